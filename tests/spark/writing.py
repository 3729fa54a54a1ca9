"""Drives the writers as Spark does: made on the driver, pickled to tasks, made again where a batch is
committed; here all in one process."""

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import from_arrow_schema
from tests.spark.topics import Topics

import barnabas
from barnabas.ids import TopicPartition
from barnabas.spark.source import BarnabasSource

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Rows = Sequence[pa.RecordBatch]


def rows(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def numbers(first: int, last: int) -> pa.RecordBatch:
    """Rows whose values are numbers, and whose keys spread them over the partitions."""
    texts = [str(number) for number in range(first, last)]
    return rows(key=pa.array(texts, pa.string()), value=pa.array(texts, pa.string()))


def _task(writer: Any, batches: Rows) -> Any:
    found = pickle.loads(pickle.dumps(writer)).write(iter(batches))
    return pickle.loads(pickle.dumps(found))


class Query:
    """A streaming query that writes: `run` is a batch of it, of which every element is a task's rows."""

    def __init__(self, options: Mapping[str, str], schema: pa.Schema | None = None) -> None:
        self._source = BarnabasSource(dict(options))
        self._schema = from_arrow_schema(schema or numbers(0, 0).schema)

    def writer(self) -> DataSourceStreamArrowWriter:
        found = self._source.streamWriter(self._schema, False)
        assert isinstance(found, DataSourceStreamArrowWriter)
        return found

    def write(self, *tasks: Rows) -> list[WriterCommitMessage | None]:
        planned = self.writer()
        return [_task(planned, batches) for batches in tasks]

    def commit(self, messages: list[WriterCommitMessage | None], batch: int) -> None:
        self.writer().commit(messages, batch)

    def run(self, batch: int, *tasks: Rows) -> None:
        self.commit(self.write(*tasks), batch)


def run_job(options: Mapping[str, str], *tasks: Rows) -> None:
    """df.write: what Spark does when no task fails."""
    schema = from_arrow_schema(tasks[0][0].schema)
    writer = BarnabasSource(dict(options)).writer(schema, False)
    writer.commit([_task(writer, batches) for batches in tasks])


def committed_values(topics: Topics, topic: str, partitions: int = 2) -> list[int]:
    """The numbers that a reader with read_committed sees now, sorted."""
    where = [TopicPartition(topic, partition) for partition in range(partitions)]
    with barnabas.Consumer(
        bootstrap_servers=topics.bootstrap, enable_auto_commit=False, isolation_level="read_committed"
    ) as consumer:
        consumer.assign(where)
        consumer.seek_to_beginning(*where)
        ends = consumer.end_offsets(where)
        found: list[int] = []
        while any(consumer.position(each) < ends[each] for each in where):
            found += [int(record.value) for record in consumer.poll(5.0) if record.value is not None]
        return sorted(found)
