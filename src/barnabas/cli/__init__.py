"""The command line: `barnabas <command>`, one module per command."""
