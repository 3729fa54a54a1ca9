"""Pipelines: one file says what flows from topics through steps into topics and tables; Spark runs it."""
