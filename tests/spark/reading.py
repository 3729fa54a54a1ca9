"""Drives the readers as Spark does, but in one process: they are created on the driver, pickled, and used in
tasks."""

import pickle
from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import DataType, StructField, StructType

from barnabas.spark.reader import TopicReader
from barnabas.spark.source import BarnabasSource
from barnabas.spark.stream import TopicStreamReader

Row = dict[str, Any]


def columns(**kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def batch_reader(options: Mapping[str, str], schema: StructType | None = None) -> TopicReader:
    source = BarnabasSource(dict(options))
    reader = source.reader(schema or source.schema())
    assert isinstance(reader, TopicReader)
    return reader


def stream_reader(options: Mapping[str, str], schema: StructType | None = None) -> TopicStreamReader:
    source = BarnabasSource(dict(options))
    reader = source.streamReader(schema or source.schema())
    assert isinstance(reader, TopicStreamReader)
    return reader


def rows_of(reader: TopicReader | TopicStreamReader, partitions: Any) -> list[Row]:
    """The rows that tasks read from the partitions, in order."""
    task = pickle.loads(pickle.dumps(reader))
    return [
        row
        for partition in pickle.loads(pickle.dumps(list(partitions)))
        for batch in task.read(partition)
        for row in batch.to_pylist()
    ]


def read(options: Mapping[str, str], schema: StructType | None = None) -> list[Row]:
    """A batch query."""
    reader = batch_reader(options, schema)
    return rows_of(reader, reader.partitions())


def values(rows: list[Row]) -> list[int]:
    """The values of records that hold a number each, sorted."""
    return sorted(int(row["value"]) for row in rows)
