"""Programs for people who work on Barnabas; they are not installed."""
