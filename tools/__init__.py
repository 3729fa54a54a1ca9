"""Programs for the people who work on Barnabas; none of them is installed."""
