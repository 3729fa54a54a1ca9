"""The writers that Spark is given: made when a query is planned, pickled to its tasks, and for streams made
again where a batch is committed."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from barnabas.spark.options import OptionError
from barnabas.spark.sink.columns import written_columns
from barnabas.spark.sink.sending import send_all
from barnabas.spark.sink.settings import WriteSettings, write_settings

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType


def _check_delivery(settings: WriteSettings) -> None:
    if settings.is_exact:
        raise OptionError("delivery=exactly-once is not there yet.")


def batch_writer(given: Mapping[str, str], schema: "StructType", overwrite: bool) -> DataSourceArrowWriter:
    if overwrite:
        raise OptionError("A topic cannot be overwritten, only appended to: write with mode append.")
    settings = write_settings(given, is_stream=False)
    _check_delivery(settings)
    return BatchWriter(settings, written_columns(settings, schema))


def stream_writer(given: Mapping[str, str], schema: "StructType") -> DataSourceStreamArrowWriter:
    """All output modes append: what complete and update put out again are newer records of the same keys."""
    settings = write_settings(given, is_stream=True)
    _check_delivery(settings)
    return StreamWriter(settings, written_columns(settings, schema))


class BatchWriter(DataSourceArrowWriter):
    """At least once. A job that fails leaves what its tasks have written."""

    def __init__(self, settings: WriteSettings, columns: tuple[str, ...]) -> None:
        self._settings = settings
        self._columns = columns

    def write(self, iterator: "Iterator[RecordBatch]") -> WriterCommitMessage:
        send_all(self._settings.client, self._settings.topic, self._columns, iterator)
        return WriterCommitMessage()


class StreamWriter(DataSourceStreamArrowWriter):
    """At least once. A batch that is tried again is written again."""

    def __init__(self, settings: WriteSettings, columns: tuple[str, ...]) -> None:
        self._settings = settings
        self._columns = columns

    def write(self, iterator: "Iterator[RecordBatch]") -> WriterCommitMessage:
        send_all(self._settings.client, self._settings.topic, self._columns, iterator)
        return WriterCommitMessage()
