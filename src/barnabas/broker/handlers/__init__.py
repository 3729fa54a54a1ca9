"""One file per API: decides on canonical messages and never sees bytes, versions aside."""
