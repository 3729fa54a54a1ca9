"""Sinks that get a stream batch by batch: functions of users, tables of databases, and tables that are
chosen by a column."""

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from barnabas.spark.pipeline.definition import DatabaseSink, FunctionSink, Sink, TableSink
from barnabas.spark.pipeline.functions import load_function
from barnabas.spark.tables.target import Mark, TableError, TableTarget
from barnabas.spark.tables.writing import write_batch as write_table

TABLES_MAX = 1_000


def write_batch(sink: Sink, frame: DataFrame, mark: Mark, directory: Path) -> None:
    """Write a batch; databases and tables skip one that they have. A function decides itself."""
    if isinstance(sink, FunctionSink):
        load_function(sink.python, directory, f"The sink {sink.name}")(frame, mark.batch)
    elif isinstance(sink, DatabaseSink):
        _write_database(sink, frame, mark)
    elif isinstance(sink, TableSink) and sink.column is not None:
        _write_tables(sink, frame, mark, directory)
    elif isinstance(sink, TableSink):
        write_table(frame, sink.target(directory), mark)


def _write_database(sink: DatabaseSink, frame: DataFrame, mark: Mark) -> None:
    from barnabas.spark.tables.databases import write_rows
    from barnabas.spark.tables.fitting import newest_of_each_key

    rows: Any = frame.toArrow()
    if sink.mode == "upsert":
        target = TableTarget(sink.table, mode="upsert", key=sink.key, order_by=sink.order_by)
        rows = newest_of_each_key(rows, target)
    write_rows(sink.url, sink.table, sink.key, rows, mark)


def _write_tables(sink: TableSink, frame: DataFrame, mark: Mark, directory: Path) -> None:
    """Write each table that the batch has rows for."""
    column = F.col(str(sink.column)).cast("string")
    values = [row[0] for row in frame.select(column).distinct().limit(TABLES_MAX + 1).collect()]
    if len(values) > TABLES_MAX:
        raise TableError(
            f"The column {sink.column} has more than {TABLES_MAX} values in one batch, and each would be a"
            " table: choose another column, or use partition_by."
        )
    for value in values:
        target = sink.target_for(value, directory)
        write_table(frame.filter(column.eqNullSafe(value)), target, mark)
