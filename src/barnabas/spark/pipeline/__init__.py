"""Pipelines: one file describes which rows go from topics through steps to topics and tables; Spark runs
it."""
