"""Drives the writers as Spark does, but in one process: they are created on the driver, pickled for tasks,
and created again to commit a batch."""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import from_arrow_schema
from tests.spark.topics import Topics

import barnabas
from barnabas.ids import TopicPartition
from barnabas.spark.sink.encoding import BATCH_PROPERTY, QUERY_PROPERTY, RUN_PROPERTY
from barnabas.spark.source import BarnabasSource
from barnabas.spark.tables.target import TableTarget
from barnabas.spark.tables.writing import FORMAT

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Rows = Sequence[pa.RecordBatch]


def rows(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def numbers(first: int, last: int) -> pa.RecordBatch:
    """Rows whose values are numbers, and whose keys spread them over the partitions."""
    texts = [str(number) for number in range(first, last)]
    return rows(key=pa.array(texts, pa.string()), value=pa.array(texts, pa.string()))


def append_to_table(frame: Any, target: TableTarget) -> None:
    """A job that appends the rows of a DataFrame to a table."""
    frame.write.format(FORMAT).options(**target.as_options()).mode("append").save()


def _task(writer: Any, batches: Rows) -> Any:
    message = pickle.loads(pickle.dumps(writer)).write(iter(batches))
    return pickle.loads(pickle.dumps(message))


class Query:
    """A streaming query that writes: `run` writes a batch; each element has the rows of a task. Its `name` is
    its id, which the checkpoint keeps over restarts."""

    def __init__(
        self, options: Mapping[str, str], schema: pa.Schema | None = None, name: str = "query-1"
    ) -> None:
        self._source = BarnabasSource(dict(options))
        self._schema = from_arrow_schema(schema or numbers(0, 0).schema)
        self._name = name

    def writer(self) -> DataSourceStreamArrowWriter:
        stream_writer = self._source.streamWriter(self._schema, False)
        assert isinstance(stream_writer, DataSourceStreamArrowWriter)
        return stream_writer

    def write(self, *tasks: Rows, batch: int = 0) -> list[WriterCommitMessage | None]:
        planned = self.writer()
        with task_context(self._name, batch):
            return [_task(planned, batches) for batches in tasks]

    def commit(self, messages: list[WriterCommitMessage | None], batch: int) -> None:
        self.writer().commit(messages, batch)

    def run(self, batch: int, *tasks: Rows) -> None:
        self.commit(self.write(*tasks, batch=batch), batch)


@contextmanager
def task_context(query: str, batch: int) -> Iterator[None]:
    """The properties that Spark sets for the tasks of a batch."""
    context = TaskContext._getOrCreate()
    context._localProperties = {
        QUERY_PROPERTY: query,
        RUN_PROPERTY: f"run of {query}",
        BATCH_PROPERTY: str(batch),
    }
    try:
        yield
    finally:
        TaskContext._setTaskContext(None)


def run_job(options: Mapping[str, str], *tasks: Rows) -> None:
    """df.write: what Spark does when no task fails."""
    schema = from_arrow_schema(tasks[0][0].schema)
    writer = BarnabasSource(dict(options)).writer(schema, False)
    writer.commit([_task(writer, batches) for batches in tasks])


def committed_records(bootstrap: str, topic: str, partitions: int = 2) -> list[Any]:
    """The records that a consumer with read_committed sees now, partition by partition."""
    where = [TopicPartition(topic, partition) for partition in range(partitions)]
    with barnabas.Consumer(
        bootstrap_servers=bootstrap, enable_auto_commit=False, isolation_level="read_committed"
    ) as consumer:
        consumer.assign(where)
        consumer.seek_to_beginning(*where)
        ends = consumer.end_offsets(where)
        records: list[Any] = []
        while any(consumer.position(each) < ends[each] for each in where):
            # Transaction markers move the position but are not records.
            records += consumer.poll(0.1)
        return sorted(records, key=lambda record: (record.partition, record.offset))


def committed_values(topics: Topics, topic: str, partitions: int = 2) -> list[int]:
    """The numbers that a consumer with read_committed sees now, sorted."""
    return sorted(int(record.value) for record in committed_records(topics.bootstrap, topic, partitions))
