"""The writers for Spark: created when a query is planned and pickled for its tasks. For streams they are
created again to commit a batch."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from barnabas.spark.options import OptionError
from barnabas.spark.sink.columns import written_columns
from barnabas.spark.sink.committing import commit_batch, commit_job
from barnabas.spark.sink.encoding import Encoder, task_of_now
from barnabas.spark.sink.sending import send_all
from barnabas.spark.sink.settings import WriteSettings, write_settings
from barnabas.spark.sink.staging import batch_file, job_directory, job_file, sweep_jobs

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType


def batch_writer(given: Mapping[str, str], schema: "StructType", overwrite: bool) -> DataSourceArrowWriter:
    if overwrite:
        raise OptionError("A topic cannot be overwritten: write with mode append.")
    settings = write_settings(given, is_stream=False)
    columns = written_columns(settings, schema)
    return ExactBatchWriter(settings, columns) if settings.is_exact else BatchWriter(settings, columns)


def stream_writer(given: Mapping[str, str], schema: "StructType") -> DataSourceStreamArrowWriter:
    """All output modes append: rows that complete and update write again are newer records of the same
    keys."""
    settings = write_settings(given, is_stream=True)
    columns = written_columns(settings, schema)
    return ExactStreamWriter(settings, columns) if settings.is_exact else StreamWriter(settings, columns)


class BatchWriter(DataSourceArrowWriter):
    """At least once. What the tasks of a failed job have written stays."""

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


class ExactBatchWriter(DataSourceArrowWriter):
    """Exactly once: all rows of the job become visible together."""

    def __init__(self, settings: WriteSettings, columns: tuple[str, ...]) -> None:
        self._settings = settings
        self._columns = columns
        self._directory = job_directory(settings)

    def write(self, iterator: "Iterator[RecordBatch]") -> WriterCommitMessage:
        encoder = Encoder(self._settings, self._columns, task_of_now(), lambda: job_file(self._directory))
        return encoder.encode(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        commit_job(self._settings, messages)
        sweep_jobs(self._directory)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        sweep_jobs(self._directory)


class ExactStreamWriter(DataSourceStreamArrowWriter):
    """Exactly once. abort() does nothing: Spark also calls it if commit() failed, and then the transaction
    may be committed or not. When the batch is tried again, the marker shows which."""

    def __init__(self, settings: WriteSettings, columns: tuple[str, ...]) -> None:
        self._settings = settings
        self._columns = columns

    def write(self, iterator: "Iterator[RecordBatch]") -> WriterCommitMessage:
        task = task_of_now()
        encoder = Encoder(self._settings, self._columns, task, lambda: batch_file(self._settings, task.batch))
        return encoder.encode(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        commit_batch(self._settings, messages, batchId)
