"""Ranges of offsets as rows, for the option rangesOnly: a query plans its batches as usual, but its rows are
the ranges to read. A sink such as tables/direct.py reads them itself, and no record goes through Spark."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from barnabas.ids import TopicPartition
from barnabas.spark.planning import Range

RANGE_SCHEMA = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("start", LongType()),
        StructField("end", LongType()),
    ]
)


def range_rows(ranges: Iterable[Range]) -> Any:
    """Ranges as a pyarrow.RecordBatch with a row for each."""
    rows = [(*each.partition, each.start, each.end) for each in ranges]
    return import_module("pyarrow").RecordBatch.from_pylist(
        [dict(zip(RANGE_SCHEMA.names, values, strict=True)) for values in rows],
        schema=to_arrow_schema(RANGE_SCHEMA, timezone="UTC"),
    )


def ranges_in(batches: Iterable[Any]) -> Iterator[Range]:
    """The ranges in the rows that Spark passes to a sink."""
    for batch in batches:
        for row in batch.to_pylist():
            yield Range(TopicPartition(row["topic"], row["partition"]), row["start"], row["end"])
