"""The one table of configuration keys, and what is computed from it. Touches no file and no socket."""
