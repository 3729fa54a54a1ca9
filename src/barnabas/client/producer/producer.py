"""The producer, as users call it.

    with Producer(bootstrap_servers="localhost:9092", linger_ms=5) as producer:
        future = producer.send("orders", key=b"42", value=b"...")
        print(future.result(10).offset)

send() may be called from any thread. Most records cost one call of a kernel (`PlainSender`); the rest of the
work happens when a batch is opened. send() raises the errors that are known at once: a record that is
too large, no metadata or no memory within max.block.ms. The future has all later errors."""

import logging
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from barnabas.client.errors import KafkaError, KafkaTimeoutError
from barnabas.client.producer.accumulator import TopicQueues
from barnabas.client.producer.batch import Callback, ProducerBatch
from barnabas.client.producer.core import ProducerCore
from barnabas.client.producer.records import ProducerRecord, SendOptions
from barnabas.client.producer.tables import (
    BatchCallback,
    BatchFuture,
    TableSender,
    highest_partition,
)
from barnabas.client.producer.transactions import State
from barnabas.client.types import OffsetAndMetadata, PartitionInfo, RecordMetadata, TopicPartition
from barnabas.kernels.record_append import PlainSender, RecordFuture

_log = logging.getLogger(__name__)


class Producer(PlainSender, ProducerCore):
    """Writes records. The settings are Kafka's: keyword arguments with underscores, or a dict with dots."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # ---- sending

    if TYPE_CHECKING:

        def send(
            self, topic: str, value: Any = None, key: Any = None, **options: Unpack[SendOptions]
        ) -> RecordFuture[RecordMetadata]:
            """See PlainSender."""

    def send_batch(
        self, topic: str | None, records: Any, on_delivery: BatchCallback | None = None
    ) -> BatchFuture:
        """Send many records at once; the future's result() says what was written to which partition.

        `records` is a pyarrow.Table or RecordBatch, or an object that Arrow can read as one. It has a column
        value and may have key (binary or string), headers (a list of pairs, or a map), partition, timestamp
        (a time, or ms), and topic, which is used if `topic` is None. No Python object is made per row.
        `records` can also be a list of (key, value) pairs. Serializers are applied to pairs but not to
        tables; interceptors are called for neither. Needs pyarrow. on_delivery(result or None, error or None)
        is called on the I/O thread."""
        sender = TableSender(self._accumulator, self._sender_settings.packing, self._block_seconds)
        sent: list[ProducerBatch] = []
        for name, rows in self._tables(topic, records):
            deadline = time.monotonic() + self._block_seconds
            queues = self._queues_of(name, deadline, highest_partition(rows))
            sent += sender.send(queues, *self._encoding(name, rows, len(queues.queues)))
        future = BatchFuture(sent)
        return future if on_delivery is None else future.add_callback(on_delivery)

    def _send(
        self, topic: str, value: Any, key: Any, options: SendOptions, on_delivery: Callback | None
    ) -> RecordFuture:
        """Send a record that cannot be appended directly to an open batch."""
        deadline = time.monotonic() + self._block_seconds
        record = self._record(topic, value, key, options)
        try:
            future = self._append(record, deadline)
        except KafkaError as error:
            self._acknowledged(None, error)
            raise
        if on_delivery is not None:
            future.add_callback(on_delivery)
        if self._interceptors:
            future.add_callback(self._acknowledged)
        return future

    def _append(self, record: ProducerRecord, deadline: float) -> RecordFuture:
        done = self._serialized_record(record)
        queues = self._queues_of(record.topic, deadline, record.partition)
        index = self._partition_of(record, done.key, done.value, queues)
        return self._accumulator.append(queues.queues[index], done, deadline)

    def _queues_of(self, topic: str, deadline: float, partition: int | None) -> TopicQueues:
        """The queues of the topic, including this partition's; wait for metadata if they are not known."""
        queues = self._known_queues(topic, partition)
        if queues is None:
            lookup = self._cluster.topic(topic, (partition or 0) + 1)
            try:
                known = self._io.call(lookup, max(deadline - time.monotonic(), 0.0))
            except KafkaTimeoutError:
                raise KafkaTimeoutError(self._missing(topic, partition)) from None
            queues = self._queues_for(topic, known)
        return queues

    # ---- flushing, metadata, closing

    def flush(self, timeout: float | None = None) -> None:
        """Send all records now, without lingering, and wait until each is confirmed or has failed."""
        if self._io.is_current:
            raise RuntimeError("a callback of the producer must not call flush()")
        deadline = None if timeout is None else time.monotonic() + timeout
        self._accumulator.flushing += 1
        try:
            self._wake()
            # The newest first: the others are done by then, and the thread wakes up once, not for each.
            for batch in reversed(self._accumulator.unfinished()):
                _wait(batch, deadline)
        finally:
            self._accumulator.flushing -= 1

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic with their leaders; waits at most max.block.ms."""
        return list(self._io.call(self._cluster.topic(topic), self._block_seconds).partitions)

    def close(self, timeout: float | None = None) -> None:
        """Send the remaining records, for at most `timeout` seconds, and stop. Aborts an open transaction."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            self._is_plain = False
        try:
            if not self._io.is_current:
                self._finish_work(timeout)
        finally:
            self._accumulator.close()
            stop = self._stop()
            if self._io.is_current:
                self._io.run(stop)
            else:
                self._io.call(stop)
                self._io.stop()

    def _finish_work(self, timeout: float | None) -> None:
        try:
            if self._has_open_transaction():
                self._abort(self._block_seconds if timeout is None else timeout)
            else:
                self.flush(timeout)
        except KafkaError as error:
            _log.warning("the producer was closed before all records were confirmed: %s", error)

    # ---- transactions

    def init_transactions(self) -> None:
        """Get an epoch for the transactional id. Fences older producers with this id and aborts their
        work."""
        transactions = self._transactional()
        self._io.call(transactions.initialize(), self._block_seconds)

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group_metadata: Any
    ) -> None:
        """Commit offsets of a consumer group as part of the transaction. `group_metadata` is the consumer's
        group_metadata(), or a group id."""
        transactions = self._transactional()
        self._io.call(transactions.send_offsets(offsets, group_metadata), self._block_seconds)

    def commit_transaction(self) -> None:
        """Commit the transaction. If one of its records has failed, this raises: call abort_transaction
        then."""
        transactions = self._transactional()
        transactions.require(State.IN_TRANSACTION)
        self._is_plain = False
        self.flush(self._block_seconds)
        self._io.call(transactions.end(committed=True), self._block_seconds)

    def abort_transaction(self) -> None:
        """Abort the transaction: consumers with read_committed see none of its records."""
        transactions = self._transactional()
        transactions.require(State.IN_TRANSACTION, State.ABORTABLE)
        self._abort(self._block_seconds)

    def _abort(self, timeout: float) -> None:
        transactions = self._transactional()
        self._is_plain = False
        self._io.call(self._drop_unsent(), timeout)
        self.flush(timeout)
        self._io.call(transactions.end(committed=False), timeout)


def _wait(batch: ProducerBatch, deadline: float | None) -> None:
    if not batch.wait(None if deadline is None else deadline - time.monotonic()):
        raise KafkaTimeoutError(f"not all records were confirmed within the timeout{batch.explain()}")
    for _, part in batch.parts:
        _wait(part, deadline)
