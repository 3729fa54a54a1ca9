"""The data source `barnabas_table`: tasks write Parquet files, and the driver adds them all to the table."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from barnabas.spark.tables.origin import origin_of
from barnabas.spark.tables.target import Mark, TableTarget, mark_of, target_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

    from barnabas.spark.sink.encoding import Encoded
    from barnabas.spark.tables.files import DataFile, FileWriter
    from barnabas.spark.tables.fitting import Fitting

QUERY_PROPERTY = "sql.streaming.queryId"


@dataclass
class Written(WriterCommitMessage):
    """The files that a task has written, its query, and perhaps its dead letters."""

    query: str
    files: "list[DataFile]"
    letters: "Encoded | None" = None


class TableSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "barnabas_table"

    def schema(self) -> "StructType":
        from barnabas.spark.tables.reading import schema_of

        return schema_of(origin_of(self.options))

    def reader(self, schema: "StructType") -> DataSourceReader:
        from barnabas.spark.tables.reading import TableReader

        return TableReader(origin_of(self.options), schema)

    def writer(self, schema: "StructType", overwrite: bool) -> "BatchTableWriter":
        return BatchTableWriter(target_of(self.options), schema, mark_of(self.options))

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "StreamTableWriter":
        from barnabas.spark.tables.direct import TopicTableWriter, rows_in

        target, rows = target_of(self.options), rows_in(self.options)
        return StreamTableWriter(target, schema) if rows is None else TopicTableWriter(target, rows)


def prepared(target: TableTarget, schema: "StructType") -> "Fitting":
    """Called before a task writes: now the table exists, with all columns. Says how rows get into it."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from barnabas.spark.tables.fitting import check_placing, fitting_of
    from barnabas.spark.tables.store import store_of

    store = store_of(target)
    rows = to_arrow_schema(schema, timezone="UTC")
    fitting = fitting_of(store.schema(), rows, evolve=target.evolve, widens=store.widens)
    check_placing(fitting, target)
    store.prepare(fitting)
    return fitting


def file_writer(target: TableTarget) -> "FileWriter":
    from barnabas.spark.tables.files import FileWriter
    from barnabas.spark.tables.store import store_of

    store = store_of(target)
    return FileWriter(
        store.staging, target.partition_by, keep_partition_columns=store.keeps_partition_columns
    )


def query_of_now() -> str:
    """The query of this task; empty if there is none."""
    context = TaskContext.get()
    query = context.getLocalProperty(QUERY_PROPERTY) if context is not None else None
    return query or ""


def _write(target: TableTarget, fitting: "Fitting", batches: "Iterator[RecordBatch]") -> Written:
    from barnabas.spark.tables.files import write_files

    files = write_files(file_writer(target), (fitting.fit(batch) for batch in batches))
    return Written(query_of_now(), files)


def _append(target: TableTarget, messages: list[Any], query: str, batch: int) -> None:
    from barnabas.spark.tables.store import append, store_of

    files = [file for message in messages if message is not None for file in message.files]
    append(store_of(target), files, Mark(query, batch))


class BatchTableWriter(DataSourceArrowWriter):
    """A job that runs twice writes twice, unless it has a mark: in foreachBatch."""

    def __init__(self, target: TableTarget, schema: "StructType", mark: Mark | None) -> None:
        self._target = target
        self._fitting = prepared(target, schema)
        self._mark = mark or Mark(f"job-{uuid.uuid4()}", 0)

    def write(self, iterator: "Iterator[RecordBatch]") -> Written:
        return _write(self._target, self._fitting, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _append(self._target, messages, *self._mark)


class StreamTableWriter(DataSourceStreamArrowWriter):
    """A batch that is tried again writes new files; maintenance removes those of the first try."""

    def __init__(self, target: TableTarget, schema: "StructType") -> None:
        self._target = target
        self._fitting = prepared(target, schema)

    def write(self, iterator: "Iterator[RecordBatch]") -> Written:
        return _write(self._target, self._fitting, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        queries = {message.query for message in messages if isinstance(message, Written)}
        if queries:
            _append(self._target, messages, queries.pop(), batchId)
