"""Batches that wait to be sent, by partition, and the memory they use.

User threads append records; the I/O thread takes batches. Appending to a batch that has space needs no lock
(see the kernel `record_append`). Opening, closing and taking batches is done under a lock."""

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.client.errors import ClosedError, ErrorCode, KafkaError, KafkaTimeoutError
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.types import TopicPartition
from barnabas.kernels.record_append import OpenBatches, RecordFuture
from barnabas.records.batch import HEADER_SIZE

# An upper bound for the varints around a key, a value and one header.
RECORD_OVERHEAD = 40
# Threads that wait for memory are woken when at most this share of buffer.memory is in use.
RESUME_SHARE_MAX = 3 / 4
RECHECK_SECONDS = 0.1


class Record(NamedTuple):
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] | None


class Limits(NamedTuple):
    batch_bytes: int
    buffer_bytes: int
    request_bytes_max: int
    linger_seconds: float


class PartitionQueue:
    """The batches of one partition, oldest first; only the last may be open."""

    def __init__(self, topic: "TopicQueues", index: int) -> None:
        self.topic = topic
        self.index = index
        self.partition = TopicPartition(topic.name, index)
        self.batches: deque[ProducerBatch] = deque()
        self.on_wire = 0


class TopicQueues(OpenBatches):
    """The partitions of a topic. `Producer.send` reads only `open` and `sticky_open` for most records."""

    def __init__(self, name: str, partitions: int) -> None:
        super().__init__()
        self.name = name
        self.queues: list[PartitionQueue] = []
        self.sticky = -1
        self.sticky_bytes = 0
        self.grow(partitions)

    def grow(self, partitions: int) -> None:
        while len(self.queues) < partitions:
            self.open.append(None)
            self.queues.append(PartitionQueue(self, len(self.queues)))

    def choose_sticky(self, available: Sequence[int]) -> None:
        """Choose another partition for records without a key, if possible one that has a leader."""
        choices = [index for index in available if index != self.sticky] or list(available)
        self.sticky = random.choice(choices) if choices else random.randrange(len(self.queues))
        self.sticky_bytes = 0
        self.sticky_open = None


class Accumulator:
    def __init__(self, limits: Limits, wake: Callable[[], None]) -> None:
        self.limits = limits
        self.waiting: dict[PartitionQueue, None] = {}
        self.incomplete: dict[ProducerBatch, None] = {}
        self.flushing = 0
        self.used_bytes = 0
        self.blocked = 0
        self.is_closed = False
        self.explain: Callable[[], str] = str
        self._wake = wake
        self._space = threading.Condition(threading.Lock())
        self._space_callbacks: list[Callable[[], object]] = []

    # ---- user threads

    def append(self, queue: PartitionQueue, record: Record, deadline: float) -> RecordFuture:
        """Add a record to the partition's open batch or to a new one; wait for memory if there is none."""
        need = self._need(record)
        with self._space:
            while (future := self._append(queue, record, need)) is None:
                self._wait_for_space(deadline)
            return future

    def append_now(self, queue: PartitionQueue, record: Record) -> RecordFuture | None:
        """As append, but without blocking: None if there is no memory (then see `add_space_callback`)."""
        need = self._need(record)
        with self._space:
            return self._append(queue, record, need)

    def _append(self, queue: PartitionQueue, record: Record, need: int) -> RecordFuture | None:
        if self.is_closed:
            raise ClosedError("the producer is closed")
        batch: ProducerBatch | None = queue.topic.open[queue.index]
        if batch is not None and (future := batch.append(*record)) is not None:
            return future
        if batch is not None:
            self._close(queue, batch)
        if self._has_space(need):
            return self._open(queue, record, need)
        return None

    def append_batch(self, queue: PartitionQueue, batch: ProducerBatch, deadline: float) -> None:
        """Add a complete batch at the end of the partition's queue; wait for memory if there is none."""
        with self._space:
            while not self._append_batch(queue, batch):
                self._wait_for_space(deadline)
        self._wake()

    def append_batch_now(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """As append_batch, but without blocking: False if there is no memory."""
        with self._space:
            is_done = self._append_batch(queue, batch)
        if is_done:
            self._wake()
        return is_done

    def _append_batch(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        if self.is_closed:
            raise ClosedError("the producer is closed")
        if not self._has_space(batch.size):
            return False
        opened = queue.topic.open[queue.index]
        if opened is not None:
            self._close(queue, opened)
        self._put(queue, batch, batch.size)
        return True

    def _has_space(self, need: int) -> bool:
        return self.used_bytes == 0 or self.used_bytes + need <= self.limits.buffer_bytes

    def _put(self, queue: PartitionQueue, batch: ProducerBatch, need: int) -> None:
        batch.reserved = need
        batch.explain = self.explain
        self.used_bytes += need
        self.incomplete[batch] = None
        queue.batches.append(batch)
        self.waiting[queue] = None

    def add_space_callback(self, callback: Callable[[], object]) -> None:
        """Wait for memory without blocking: any thread calls `callback` when some is free."""
        with self._space:
            self.blocked += 1
            self._space_callbacks.append(callback)
        self._wake()

    def remove_space_callback(self, callback: Callable[[], object]) -> None:
        with self._space:
            self.blocked -= 1
            self._space_callbacks.remove(callback)

    def _need(self, record: Record) -> int:
        size = HEADER_SIZE + RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
        for name, value in record.headers or ():
            size += len(name.encode("utf-8", "surrogateescape")) + len(value or b"") + 10
        if size - RECORD_OVERHEAD > self.limits.request_bytes_max or size > self.limits.buffer_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"the record has about {size} bytes, more than max.request.size or buffer.memory allows",
            )
        return max(size, self.limits.batch_bytes)

    def _open(self, queue: PartitionQueue, record: Record, need: int) -> RecordFuture:
        batch = ProducerBatch(queue.partition, self.limits.batch_bytes, time.monotonic())
        future = batch.append(*record)
        assert future is not None
        self._put(queue, batch, need)
        queue.topic.open[queue.index] = batch
        if queue.topic.sticky == queue.index:
            queue.topic.sticky_open = batch
        self._wake()
        return future

    def _close(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        batch.close()
        topic = queue.topic
        if topic.open[queue.index] is batch:
            topic.open[queue.index] = None
        if topic.sticky == queue.index:
            topic.sticky_open = None
            topic.sticky_bytes += batch.size

    def _wait_for_space(self, deadline: float) -> None:
        self._wake()
        left = deadline - time.monotonic()
        self.blocked += 1
        try:
            if left <= 0:
                raise self.full_error()
            # With a slow broker little memory becomes free, and threads are not woken for that: check again.
            self._space.wait(min(left, RECHECK_SECONDS))
        finally:
            self.blocked -= 1

    def full_error(self) -> KafkaTimeoutError:
        return KafkaTimeoutError(
            f"buffer.memory is full and was not freed within max.block.ms{self.explain()}"
        )

    def needs_new_sticky(self, topic: TopicQueues) -> bool:
        return topic.sticky < 0 or topic.sticky_bytes >= max(self.limits.batch_bytes, 1)

    def unfinished(self) -> list[ProducerBatch]:
        with self._space:
            return list(self.incomplete)

    def close(self) -> None:
        with self._space:
            self.is_closed = True
            self._notify_space()

    # ---- the I/O thread

    def ready_at(self, queue: PartitionQueue) -> float:
        """The time when the first batch of the queue may be sent; 0 means now."""
        batch = queue.batches[0]
        if batch.attempts > 0:
            return batch.retry_at
        is_urgent = (
            len(queue.batches) > 1 or not batch.is_open or self.flushing or self.blocked or self.is_closed
        )
        return 0.0 if is_urgent else batch.created + self.limits.linger_seconds

    def take(self, queue: PartitionQueue) -> ProducerBatch:
        with self._space:
            batch = queue.batches.popleft()
            if batch.is_open:
                self._close(queue, batch)
            # Move the queue to the end: if not all partitions fit into a request, they take turns.
            del self.waiting[queue]
            if queue.batches:
                self.waiting[queue] = None
        return batch

    def take_closed(self, queue: PartitionQueue, count_max: int, count_min: int) -> list[ProducerBatch]:
        """Take the first batches of the queue if they are complete and were never sent; none if they are
        fewer than `count_min`."""
        batches: list[ProducerBatch] = []
        with self._space:
            for batch in queue.batches:
                if len(batches) == count_max or batch.is_open or batch.attempts or batch.base_sequence >= 0:
                    break
                batches.append(batch)
            if len(batches) < count_min:
                return []
            for _ in batches:
                queue.batches.popleft()
            if not queue.batches:
                self.waiting.pop(queue, None)
        return batches

    def put_back(self, queue: PartitionQueue, batches: Sequence[ProducerBatch]) -> None:
        """Batches to be sent again go to the front, in the order of their sequence numbers."""
        with self._space:
            for batch in reversed(batches):
                place = 0
                for other in queue.batches:
                    if other.base_sequence < 0 or not _comes_before(other, batch):
                        break
                    place += 1
                queue.batches.insert(place, batch)
            self.waiting[queue] = None

    def replace(self, batch: ProducerBatch, parts: Sequence[ProducerBatch]) -> None:
        """A batch was split: its parts now hold its memory."""
        with self._space:
            self.incomplete.pop(batch, None)
            for part in parts:
                part.reserved = batch.reserved // len(parts)
                self.incomplete[part] = None
            self.used_bytes -= batch.reserved - sum(part.reserved for part in parts)

    def remove(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Remove a batch that will not be sent from its queue."""
        with self._space:
            if batch.is_open:
                self._close(queue, batch)
            if batch in queue.batches:
                queue.batches.remove(batch)
            if not queue.batches:
                self.waiting.pop(queue, None)

    def release(self, batch: ProducerBatch) -> None:
        """Free the memory of a batch that is done."""
        self.release_many((batch,))

    def release_many(self, batches: Sequence[ProducerBatch]) -> None:
        with self._space:
            for batch in batches:
                if self.incomplete.pop(batch, 0) is None:
                    self.used_bytes -= batch.reserved
            # Not for every batch: a thread that fills one and blocks again costs two thread switches.
            if self.blocked and self.used_bytes <= self.limits.buffer_bytes * RESUME_SHARE_MAX:
                self._notify_space()

    def _notify_space(self) -> None:
        self._space.notify_all()
        for callback in self._space_callbacks:
            callback()


def _comes_before(one: ProducerBatch, other: ProducerBatch) -> bool:
    """Compare sequences. They wrap around: `one` is first if `other` is less than half the range ahead."""
    return 0 < (other.base_sequence - one.base_sequence) & 0x7FFFFFFF < 1 << 30
