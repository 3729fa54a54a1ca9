"""The sink of the data source `barnabas`: rows become records, at least once or exactly once."""
