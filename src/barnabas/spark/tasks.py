"""A task of a query that reads: it gets a range of one partition, reads and decodes it, and yields Arrow
batches with the schema of the query."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from barnabas.ids import TopicPartition
from barnabas.spark.brokers import brokers_of
from barnabas.spark.columns import BadRecords, projection_of
from barnabas.spark.fetching import Fetching, RangeReader
from barnabas.spark.planning import Range
from barnabas.spark.settings import ReadSettings


class RangePartition(InputPartition):
    """Offsets `start` to `end` (exclusive) of one partition. The driver pickles it for a task. Without a
    topic there is nothing to read."""

    def __init__(self, topic: str = "", partition: int = 0, start: int = 0, end: int = 0) -> None:
        super().__init__(None)
        self.topic = topic
        self.partition = partition
        self.start = start
        self.end = end

    @classmethod
    def of(cls, part: Range) -> "RangePartition":
        return cls(*part.partition, part.start, part.end)

    @property
    def range(self) -> Range:
        return Range(TopicPartition(self.topic, self.partition), self.start, self.end)


def read_range(
    settings: ReadSettings, schema: StructType, to_read: Range, bad: BadRecords | None = None
) -> Iterator[Any]:
    """The rows of a range as pyarrow.RecordBatch. `bad` gets the records that cannot be decoded, if it is
    given."""
    if to_read.size == 0:
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
    reader = RangeReader(brokers_of(settings.client), to_read, fetching)
    for batch in reader.batches():
        yield from projection.apply(batch)
    projection.finish()
