"""What a task does: reads its range, decodes it if told to, and yields Arrow batches in the query's
schema."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.types import StructType

from barnabas.spark.brokers import brokers_of
from barnabas.spark.columns import projection_of
from barnabas.spark.fetching import Fetching, RangeReader
from barnabas.spark.planning import Range
from barnabas.spark.settings import ReadSettings


def read_range(settings: ReadSettings, schema: StructType, wanted: Range) -> Iterator[Any]:
    """The rows of a range as pyarrow.RecordBatch."""
    if wanted.size == 0:
        return
    projection = projection_of(settings, schema)
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
    reader = RangeReader(brokers_of(settings.client), wanted, fetching)
    for batch in reader.batches():
        yield from projection.apply(batch)
    projection.finish()
