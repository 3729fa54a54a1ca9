"""Exactly once, in the tasks: rows become complete record batches, without a producer id, for the driver.

They are passed in the commit message, or in a file (staging.py) if they are too large for that."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.client.producer.tables import by_topic
from barnabas.ids import TopicPartition
from barnabas.records.arrow_module import pyarrow
from barnabas.records.tables import encode_batches
from barnabas.spark.sink.clusters import cluster_of
from barnabas.spark.sink.columns import picked
from barnabas.spark.sink.settings import WriteSettings
from barnabas.spark.sink.staging import create_file

# Rows are collected up to about this size before they are encoded, so that batches become large.
PORTION_BYTES = 8 << 20
QUERY_PROPERTY, BATCH_PROPERTY, RUN_PROPERTY = (
    "sql.streaming.queryId",
    "streaming.sql.batchId",
    "spark.jobGroup.id",
)


class Task(NamedTuple):
    """The query, run and batch of a task, as Spark names them."""

    query: str = ""
    run: str = ""
    batch: int = 0


class Part(NamedTuple):
    """Record batches of a partition, one after the other; in a file if `data` is None."""

    partition: TopicPartition
    data: bytes | None
    position: int
    size: int


@dataclass
class Encoded(WriterCommitMessage):
    """The record batches of a task, in the order in which they must be written."""

    task: Task
    parts: list[Part] = field(default_factory=list)
    path: str = ""
    records: int = 0

    def read(self) -> Iterator[tuple[TopicPartition, Callable[[], bytes]]]:
        """The partition of each part, and a function that returns its data."""
        for part in self.parts:
            yield part.partition, partial(self._data, part)

    def _data(self, part: Part) -> bytes:
        if part.data is not None:
            return part.data
        try:
            with Path(self.path).open("rb") as file:
                file.seek(part.position)
                data = file.read(part.size)
        except (FileNotFoundError, PermissionError) as error:
            raise type(error)(
                f"The driver cannot read the staged file {self.path} ({error.strerror}): set stagingDir to a"
                " directory that tasks and driver share, and run both as the same user."
            ) from None
        if len(data) != part.size:
            raise EOFError(
                f"The staged file {self.path} is incomplete: it ends after {part.position + len(data)} bytes."
            )
        return data


def task_of_now() -> Task:
    context = TaskContext.get()
    if context is None:
        return Task()
    names = (QUERY_PROPERTY, RUN_PROPERTY, BATCH_PROPERTY)
    query, run, batch = (context.getLocalProperty(name) for name in names)
    return Task(query or "", run or "", int(batch or 0))


class Encoder:
    """Encodes the rows of one task; `path_of` returns the path of a file, if one is needed."""

    def __init__(
        self, settings: WriteSettings, columns: tuple[str, ...], task: Task, path_of: Callable[[], Path]
    ) -> None:
        self._settings = settings
        self._config = settings.client_config()
        self._columns = columns
        self._path_of = path_of
        self._file: BinaryIO | None = None
        self._size = 0
        self._message = Encoded(task)

    def encode(self, batches: Iterable[Any]) -> Encoded:
        """All rows of pyarrow.RecordBatches."""
        try:
            for table in _portions(picked(batch, self._columns) for batch in batches):
                self._encode(table)
        finally:
            if self._file is not None:
                self._file.close()
        return self._message

    def _encode(self, table: Any) -> None:
        self._message.records += table.num_rows
        by_name: dict[str, list[Any]] = {}
        for name, rows in by_topic(self._settings.topic, table):
            by_name.setdefault(name, []).extend(rows)
        for name, rows in by_name.items():
            by_partition: dict[int, list[bytearray]] = {}
            for partition, batch, _ in self._batches(name, pyarrow().Table.from_batches(rows)):
                by_partition.setdefault(partition, []).append(batch)
            for partition, data in sorted(by_partition.items()):
                self._add(TopicPartition(name, partition), b"".join(data))

    def _batches(self, topic: str, table: Any) -> list[tuple[int, bytearray, int]]:
        size_max = self._config["max.request.size"]
        try:
            return encode_batches(
                table,
                cluster_of(self._settings.client).partition_count(topic),
                batch_bytes=min(self._config["batch.size"], size_max),
                compression=self._config["compression.type"],
                record_bytes_max=size_max,
            )
        except OverflowError as error:
            text = f"{error}: more than max.request.size allows"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, text) from None

    def _add(self, partition: TopicPartition, data: bytes) -> None:
        message = self._message
        if self._file is None and self._size + len(data) > self._settings["stagingBytes"]:
            self._stage()
        if self._file is not None:
            self._file.write(data)
        kept = data if self._file is None else None
        message.parts.append(Part(partition, kept, self._size, len(data)))
        self._size += len(data)

    def _stage(self) -> None:
        """Write everything to a file from now on, including what was encoded before."""
        path = self._path_of()
        self._file = create_file(path)
        for part in self._message.parts:
            self._file.write(part.data or b"")
        self._message.path = str(path.absolute())
        self._message.parts = [part._replace(data=None) for part in self._message.parts]


def _portions(batches: Iterable[Any]) -> Iterator[Any]:
    """Tables of about PORTION_BYTES; none is empty."""
    gathered: list[Any] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        gathered.append(batch)
        size += batch.nbytes
        if size >= PORTION_BYTES:
            yield pyarrow().Table.from_batches(gathered)
            gathered, size = [], 0
    if gathered:
        yield pyarrow().Table.from_batches(gathered)
