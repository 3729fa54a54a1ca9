"""A batch of records for one partition, and the outcome that the futures of its records share.

User threads append records. The I/O thread does everything else. The outcome is set once."""

import logging
import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from barnabas.client.errors import KafkaError, KafkaTimeoutError
from barnabas.client.habits import missing_attribute
from barnabas.client.types import RecordMetadata, TopicPartition
from barnabas.kernels.record_append import RecordBuffer, RecordFuture, write_header
from barnabas.kernels.record_decode import decode_records
from barnabas.records.batch import (
    HEADER_SIZE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)
from barnabas.records.compression import NONE, compress

Callback = Callable[[RecordMetadata | None, KafkaError | None], object]
Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]

_log = logging.getLogger(__name__)
# One lock for all batches is enough: it is held for a few instructions only.
_outcome_lock = threading.Lock()


class Packing(NamedTuple):
    """How batches are encoded: the compression codec, its level, and the transactional flag."""

    codec: int = NONE
    level: int | None = None
    transactional: bool = False


class ProducerBatch(RecordBuffer):
    # Why records are not confirmed; the accumulator sets it.
    explain: Callable[[], str] = str

    def __init__(self, partition: TopicPartition, capacity: int, created: float) -> None:
        super().__init__(capacity)
        self.partition = partition
        self.created = created
        self.reserved = 0
        self.cause = ""
        self.attempts = 0
        self.retry_at = 0.0
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.has_been_reset = False
        self.is_done = False
        self.error: KafkaError | None = None
        self.record_errors: dict[int, str] = {}
        self.base_offset = -1
        self.log_append_time = -1
        self.parts: list[tuple[int, ProducerBatch]] = []
        self._packed: bytearray | None = None
        self._event: threading.Event | None = None
        self._callbacks: list[tuple[RecordFuture, Callback]] = []
        self._when_settled: list[Callable[[], object]] = []

    def __repr__(self) -> str:
        return f"<batch of {self.count} for {self.partition}, sequence {self.base_sequence}>"

    # ---- bytes

    def pack(self, packing: Packing) -> bytearray:
        """Space for the header, followed by the records, compressed if a codec is set."""
        if self._packed is None:
            self._packed = self.data
            if packing.codec != NONE:
                body = compress(packing.codec, memoryview(self.data)[HEADER_SIZE:], packing.level)
                self._packed = bytearray(HEADER_SIZE) + body
        return self._packed

    def sealed(self, packing: Packing) -> bytearray:
        """The whole batch as it is sent. The header is written each time: a retry may have a new sequence."""
        packed = self.pack(packing)
        attributes = packing.codec | (TRANSACTIONAL_FLAG if packing.transactional else 0)
        write_header(
            packed,
            attributes,
            self.count,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
        )
        return packed

    def rows(self) -> list[Row]:
        """The records, decoded again, for a batch that must be split into smaller ones."""
        payload = bytes(memoryview(self.data)[HEADER_SIZE:])
        decoded = decode_records(payload, 0, self.count, self.base_timestamp, 0)
        return [(timestamp, key, value, headers) for key, value, headers, timestamp, _ in decoded]

    # ---- outcome

    def finish(
        self, base_offset: int = -1, log_append_time: int = -1, error: KafkaError | None = None
    ) -> bool:
        """Set the outcome: the batch is written or has failed. False if it already had an outcome."""
        with _outcome_lock:
            if self.is_done:
                return False
            self.base_offset, self.log_append_time, self.error = base_offset, log_append_time, error
            self.is_done = True
            event = self._event
            callbacks, self._callbacks = self._callbacks, []
        self._packed = None
        self.forget_data()
        if event is not None:
            event.set()
        for future, callback in callbacks:
            _run_callback(future, callback)
        for settled in self._when_settled:
            settled()
        return True

    def split_into(self, parts: list[tuple[int, "ProducerBatch"]]) -> None:
        """The records are now in these batches, each given with the index of its first record."""
        with _outcome_lock:
            self.parts = parts
            event = self._event
            callbacks, self._callbacks = self._callbacks, []
            for future, callback in callbacks:
                parts[self._part_of(future.index)][1]._callbacks.append((future, callback))
        self._packed = None
        self.forget_data()
        if event is not None:
            event.set()
        for settled in self._when_settled:
            settled()

    def result_of(self, future: RecordFuture, timeout: float | None) -> RecordMetadata:
        error = self.exception_of(future, timeout)
        if error is not None:
            raise error
        return self._metadata(future)

    def exception_of(self, future: RecordFuture, timeout: float | None) -> KafkaError | None:
        deadline = None if timeout is None else time.monotonic() + timeout
        batch, index = self, future.index
        while not batch.is_done:
            if batch.parts:
                batch, index = batch._within(index)
            elif not batch.wait(None if deadline is None else deadline - time.monotonic()):
                text = f"the record for {self.partition} is not confirmed after {timeout:g} s"
                raise KafkaTimeoutError(f"{text}{self.explain()}")
        return batch.error_at(index)

    def wait(self, timeout: float | None) -> bool:
        """Wait until the batch is done or split."""
        with _outcome_lock:
            if self.is_done or self.parts:
                return True
            if self._event is None:
                self._event = threading.Event()
            event = self._event
        return event.wait(None if timeout is None else max(timeout, 0.0))

    def call_when_settled(self, settled: Callable[[], object]) -> None:
        """Call `settled` when the batch is done or split: `wait` for callers that must not block.

        Any thread may make the call. It happens after the callbacks of the records."""
        with _outcome_lock:
            is_settled = self.is_done or bool(self.parts)
            if not is_settled:
                self._when_settled.append(settled)
        if is_settled:
            settled()

    @staticmethod
    def no_attribute(name: str) -> AttributeError:
        """The error for an attribute that the futures of the records do not have."""
        return missing_attribute(RecordFuture, name)

    def is_done_at(self, index: int) -> bool:
        batch = self
        while batch.parts:
            batch, index = batch._within(index)
        return batch.is_done

    def call_when_done(self, future: RecordFuture, callback: Callback) -> None:
        with _outcome_lock:
            batch, index = self, future.index
            while batch.parts:
                batch, index = batch._within(index)
            if not batch.is_done:
                batch._callbacks.append((future, callback))
                return
        _run_callback(future, callback)

    def error_at(self, index: int) -> KafkaError | None:
        if self.error is not None and index in self.record_errors:
            return KafkaError(self.error.code, self.record_errors[index])
        return self.error

    def outcome_of(self, future: RecordFuture) -> tuple[RecordMetadata | None, KafkaError | None]:
        """The metadata or the error of a record that is done."""
        batch, index = self, future.index
        while batch.parts:
            batch, index = batch._within(index)
        error = batch.error_at(index) if batch.error is not None else None
        return (self._metadata(future), None) if error is None else (None, error)

    def _part_of(self, index: int) -> int:
        return bisect_right(self.parts, index, key=lambda part: part[0]) - 1

    def _within(self, index: int) -> tuple["ProducerBatch", int]:
        start, batch = self.parts[self._part_of(index)]
        return batch, index - start

    def _metadata(self, future: RecordFuture) -> RecordMetadata:
        batch, index = self, future.index
        while batch.parts:
            batch, index = batch._within(index)
        return RecordMetadata(
            self.partition.topic,
            self.partition.partition,
            -1 if batch.base_offset < 0 else batch.base_offset + index,
            future.timestamp if batch.log_append_time < 0 else batch.log_append_time,
            future.key_size,
            future.value_size,
        )


def _run_callback(future: RecordFuture, callback: Callback) -> None:
    try:
        callback(*future.batch.outcome_of(future))
    except Exception:
        _log.exception("a delivery callback failed")


def split_batch(batch: ProducerBatch, batch_bytes: int) -> list[tuple[int, ProducerBatch]]:
    """Split a batch that the broker refused as too large.

    Returns at least two batches with the same records, each with the index of its first record in `batch`."""
    # At most half of the refused size, even if batch.size is larger: otherwise nothing would be gained.
    capacity = min(batch_bytes, HEADER_SIZE + (batch.size - HEADER_SIZE) // 2)
    parts: list[tuple[int, ProducerBatch]] = []
    for index, row in enumerate(batch.rows()):
        if not parts or parts[-1][1].append(*row) is None:
            part = ProducerBatch(batch.partition, capacity, batch.created)
            part.append(*row)
            parts.append((index, part))
    for _, part in parts:
        part.close()
        # A part counts as a retry: it does not linger, and it goes to the front of the queue.
        part.attempts = batch.attempts
    return parts
