"""Sending whole Arrow tables: a kernel encodes them batch by batch, and one future covers all records."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from barnabas.client.errors import ErrorCode, KafkaError, KafkaTimeoutError
from barnabas.client.habits import Hinted
from barnabas.client.producer.accumulator import Accumulator, PartitionQueue, TopicQueues
from barnabas.client.producer.batch import Packing, ProducerBatch
from barnabas.client.types import TopicPartition
from barnabas.records.arrow_module import compute, pyarrow
from barnabas.records.tables import Encoding, encoded, record_batches

PARTITION_MAX = 2**31 - 1


class Written(NamedTuple):
    """What was written to one partition: its offsets, as ascending ranges. With acks=0 they are unknown."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which is of no use here
    offsets: tuple[range, ...]


class BatchResult(NamedTuple):
    """The outcome of a table: the number of records, and what was written to each partition."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which is of no use here
    partitions: dict[TopicPartition, Written]


BatchCallback = Callable[[BatchResult | None, KafkaError | None], object]


class BatchFuture(Hinted):
    """The outcome of many records, sent together.

    future = producer.send_batch("orders", table)
    print(future.result(30).count)
    """

    def __init__(self, batches: Sequence[ProducerBatch]) -> None:
        self._batches = batches

    def result(self, timeout: float | None = None) -> BatchResult:
        """Where the records were written; waits for all of them, at most `timeout` seconds.

        Raises the first error; written() then returns what was written despite it."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self.written()

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """The first error, or None; waits as result() does."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for batch in self._batches:
            _wait(batch, deadline)
        failed = [part for part in self._parts() if part.error is not None]
        if not failed or failed[0].error is None:
            return None
        first, error = failed[0], failed[0].error
        count = sum(part.count for part in failed)
        total = sum(part.count for part in self._parts())
        text = f"{count} of {total} records were not written, first those for {first.partition}:"
        return KafkaError(error.code, f"{text} {error.message}")

    def written(self) -> BatchResult:
        """What has been written so far."""
        by_partition: dict[TopicPartition, list[ProducerBatch]] = {}
        for part in self._parts():
            if part.is_done and part.error is None:
                by_partition.setdefault(part.partition, []).append(part)
        partitions = {partition: _written(parts) for partition, parts in sorted(by_partition.items())}
        return BatchResult(sum(each.count for each in partitions.values()), partitions)

    def done(self) -> bool:
        """Whether every record was written or has failed."""
        return all(part.is_done for part in self._parts())

    def add_callback(self, callback: BatchCallback) -> "BatchFuture":
        """Call callback(result or None, error or None) when all records are done.

        The I/O thread makes the call, or this thread at once if they are done already."""
        _Countdown(self, callback).begin(self._batches)
        return self

    def _parts(self) -> Iterator[ProducerBatch]:
        for batch in self._batches:
            yield from _leaves(batch)


class _Countdown:
    """Runs the callback once every batch, and every part of the batches that were split, is done."""

    def __init__(self, future: BatchFuture, callback: BatchCallback) -> None:
        self._future = future
        self._callback = callback
        self._left = 1
        self._lock = threading.Lock()

    def begin(self, batches: Sequence[ProducerBatch]) -> None:
        self._watch(batches)
        self._count_down()

    def _watch(self, batches: Sequence[ProducerBatch]) -> None:
        with self._lock:
            self._left += len(batches)
        for batch in batches:
            batch.call_when_settled(partial(self._settled, batch))

    def _settled(self, batch: ProducerBatch) -> None:
        self._watch([part for _, part in batch.parts])
        self._count_down()

    def _count_down(self) -> None:
        with self._lock:
            self._left -= 1
            is_last = self._left == 0
        if is_last:
            error = self._future.exception()
            self._callback(None if error else self._future.written(), error)


def _leaves(batch: ProducerBatch) -> Iterator[ProducerBatch]:
    if not batch.parts:
        yield batch
    for _, part in batch.parts:
        yield from _leaves(part)


def _wait(batch: ProducerBatch, deadline: float | None) -> None:
    if not batch.wait(None if deadline is None else deadline - time.monotonic()):
        text = f"the records for {batch.partition} were not confirmed within the timeout"
        raise KafkaTimeoutError(f"{text}{batch.explain()}")
    for _, part in batch.parts:
        _wait(part, deadline)


def _written(parts: list[ProducerBatch]) -> Written:
    ranges: list[range] = []
    for part in sorted(parts, key=lambda part: part.base_offset):
        start, end = part.base_offset, part.base_offset + part.count
        if start >= 0 and ranges and ranges[-1].stop == start:
            ranges[-1] = range(ranges[-1].start, end)
        elif start >= 0:
            ranges.append(range(start, end))
    return Written(sum(part.count for part in parts), tuple(ranges))


class TableSender:
    """Encodes the rows of tables and passes them to the accumulator, as complete batches."""

    def __init__(self, accumulator: Accumulator, packing: Packing, block_seconds: float) -> None:
        self._accumulator = accumulator
        self._packing = packing
        self._block_seconds = block_seconds

    def send(self, queues: TopicQueues, batches: Sequence[Any], encoding: Encoding) -> list[ProducerBatch]:
        """Encode and queue all rows; waits while buffer.memory is full, at most max.block.ms for each
        batch."""
        sent: list[ProducerBatch] = []
        for queue, batch in encoded_batches(queues, batches, encoding, self._packing):
            self._accumulator.append_batch(queue, batch, time.monotonic() + self._block_seconds)
            sent.append(batch)
        return sent


def encoded_batches(
    queues: TopicQueues, batches: Sequence[Any], encoding: Encoding, packing: Packing
) -> Iterator[tuple[PartitionQueue, ProducerBatch]]:
    """Encode the rows, one portion at a time; yields each batch with the queue it belongs to."""
    try:
        for portion in encoded(batches, encoding):
            for each in portion:
                queue = queues.queues[each.partition]
                batch = ProducerBatch(queue.partition, encoding.batch_bytes, time.monotonic())
                batch.adopt(each.data, each.count, each.base_timestamp, each.max_timestamp)
                batch.pack(packing)
                yield queue, batch
    except OverflowError as error:
        text = f"{error}: more than max.request.size or buffer.memory allows"
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, text) from None


def highest_partition(batches: Sequence[Any]) -> int | None:
    """The highest partition that a row names, or None. The encoder refuses invalid partitions later."""
    columns = [batch.column("partition") for batch in batches if "partition" in batch.schema.names]
    highest = [compute().max(column).as_py() for column in columns if pyarrow().types.is_integer(column.type)]
    return max((number for number in highest if number is not None and number <= PARTITION_MAX), default=None)


def is_table(records: Any) -> bool:
    """Whether Arrow can read the records as a table (a mapping of columns is one). Otherwise they are
    pairs."""
    protocol = ("__arrow_c_stream__", "__arrow_c_array__", "column_names")
    return isinstance(records, Mapping) or any(hasattr(records, name) for name in protocol)


def table_of_pairs(pairs: Iterable[tuple[bytes | None, bytes | None]]) -> Any:
    arrow = pyarrow()
    keys, values = [], []
    for key, value in pairs:
        keys.append(key)
        values.append(value)
    columns = [arrow.array(keys, arrow.large_binary()), arrow.array(values, arrow.large_binary())]
    return arrow.RecordBatch.from_arrays(columns, names=["key", "value"])


def by_topic(topic: str | None, table: Any) -> Iterator[tuple[str, list[Any]]]:
    """The rows of each topic: all rows for `topic`, or grouped by the column topic."""
    batches = record_batches(table)
    if topic is not None:
        yield topic, batches
        return
    arrow, functions = pyarrow(), compute()
    for batch in batches:
        if "topic" not in batch.schema.names:
            raise ValueError("send_batch needs a topic, or a table with a column topic")
        names = batch.column("topic").cast(arrow.string())
        if names.null_count:
            raise ValueError("a row of the table has no topic")
        for name in names.unique().to_pylist():
            yield name, [batch.filter(functions.equal(names, name))]


def with_partitions(
    batches: Sequence[Any],
    partitioner: Callable[[bytes | None, bytes | None, int], int],
    count: int,
) -> list[Any]:
    """The batches with a partition in every row: the partitioner chooses where the row names none."""
    arrow = pyarrow()
    partitioned = []
    for batch in batches:
        names = batch.schema.names
        none = [None] * batch.num_rows
        given = batch.column("partition").to_pylist() if "partition" in names else none
        keys = batch.column("key").cast(arrow.large_binary()).to_pylist() if "key" in names else none
        values = batch.column("value").cast(arrow.large_binary()).to_pylist()
        chosen = [
            partitioner(key, value, count) if number is None else number
            for number, key, value in zip(given, keys, values, strict=True)
        ]
        rest = batch.drop_columns(["partition"]) if "partition" in names else batch
        partitioned.append(rest.append_column("partition", arrow.array(chosen, arrow.int32())))
    return partitioned
