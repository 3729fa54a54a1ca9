"""A task of a query that reads: it gets ranges of partitions, reads and decodes one after the other, and
yields Arrow batches with the schema of the query."""

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from barnabas.spark.brokers import brokers_of
from barnabas.spark.columns import BadRecords, projection_of
from barnabas.spark.fetching import Fetching, RangeReader
from barnabas.spark.planning import Range, packed, split
from barnabas.spark.settings import ReadSettings


class RangesPartition(InputPartition):
    """The ranges of one task. The driver pickles it. Without ranges there is nothing to read."""

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)


def tasks_of(settings: ReadSettings, ranges: Iterable[Range]) -> list[RangesPartition]:
    """The tasks that read the ranges."""
    parts = split(ranges, settings["maxRecordsPerPartition"], settings["minPartitions"])
    return [RangesPartition(each) for each in packed(parts, settings["maxPartitions"])]


def read_ranges(
    settings: ReadSettings, schema: StructType, ranges: Iterable[Range], bad: BadRecords | None = None
) -> Iterator[Any]:
    """The rows of ranges as pyarrow.RecordBatch. `bad` gets the records that cannot be decoded, if it is
    given."""
    to_read = [each for each in ranges if each.size > 0]
    if not to_read:
        return
    projection = projection_of(settings, schema, bad)
    fetching = Fetching(
        columns=projection.kafka_columns,
        rows_max=settings["batchRows"],
        bytes_max=settings["batchBytes"],
        fetch_bytes=settings.fetch_bytes,
        read_committed=settings.read_committed,
        check_crcs=settings.client_config()["check.crcs"],
        fail_on_data_loss=settings["failOnDataLoss"],
        seconds=settings["kafkaConsumer.pollTimeoutMs"] / 1000,
    )
    brokers = brokers_of(settings.client)
    for each in to_read:
        for batch in RangeReader(brokers, each, fetching).batches():
            yield from projection.apply(batch)
    projection.finish()
