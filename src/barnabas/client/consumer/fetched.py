"""The answer of a fetch for one partition: batches, of which records are taken bit by bit.

With read_committed, batches of aborted transactions are passed over: the broker names the aborted producers
and the offset from which each is, and a control batch in the log says where its transaction ended."""

from typing import NamedTuple

from barnabas.client.errors import ErrorCode, KafkaError, SerializationError
from barnabas.client.types import TopicPartition
from barnabas.kernels.batches import scan_batches
from barnabas.kernels.record_decode import BatchCursor, Columns, ConsumerRecord
from barnabas.records.batch import HEADER_SIZE, BatchHeader, crc_is_valid, iter_headers
from barnabas.records.builder import ABORT_MARKER, read_marker
from barnabas.records.compression import decompress
from barnabas.wire.messages.fetch import AbortedTransaction

DECOMPRESSED_BYTES_MAX = 1 << 30


class Reading(NamedTuple):
    """How records are read: the two deserializers, and the consumer's settings."""

    key_deserializer: object
    value_deserializer: object
    check_crcs: bool = True
    read_committed: bool = False


class Fetched:
    """`take` from it until `is_done`; `next_offset` is where reading stands."""

    def __init__(
        self,
        partition: TopicPartition,
        data: memoryview,
        offset: int,
        aborted: list[AbortedTransaction] | None,
        reading: Reading,
    ) -> None:
        self._partition = partition
        self._data = data
        self._reading = reading
        self._headers = iter_headers(data)
        self._entry: tuple[int, BatchHeader] | None = None
        self._aborted = sorted(aborted or (), key=lambda each: each.first_offset, reverse=True)
        self._aborted_producers: set[int] = set()
        self._cursor: BatchCursor | None = None
        self._batch_end = offset
        self.next_offset = offset
        self.leader_epoch = -1
        self.is_done = False
        self.size = len(data)

    def end_offset(self) -> int:
        """Where the next fetch begins: behind the last whole batch."""
        batches = scan_batches(self._data, 0)
        if not batches:
            return self.next_offset
        _, _, base_offset, last_offset_delta, _ = batches[-1]
        return max(self.next_offset, base_offset + last_offset_delta + 1)

    def take(self, out: list[ConsumerRecord], room: int) -> None:
        """Append up to `room` records. What is wrong is raised once the records before it were taken."""
        taken = len(out)
        try:
            while len(out) - taken < room and self._is_open():
                assert self._cursor is not None
                self._cursor.take(out, room - (len(out) - taken))
                self._advance()
        except Exception as error:
            self._stop_at(error, len(out) > taken)

    def take_columns(self, columns: Columns, topic_number: int, room: int) -> None:
        taken = columns.count
        try:
            while columns.count - taken < room and self._is_open():
                assert self._cursor is not None
                self._cursor.take_columns(columns, topic_number, room - (columns.count - taken))
                self._advance()
        except Exception as error:
            self._stop_at(error, columns.count > taken)

    def _stop_at(self, error: Exception, is_later: bool) -> None:
        if self._cursor is not None:
            self.next_offset = max(self.next_offset, self._cursor.next_offset)
        if is_later:
            return
        where = f"{self._partition} at or after offset {self.next_offset}"
        if isinstance(error, KafkaError):
            raise error
        if isinstance(error, ValueError) and self._reading[:2] == (None, None):
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"A record of {where} is malformed: {error}"
            ) from error
        raise SerializationError(f"A record of {where} cannot be deserialized: {error}") from error

    def _advance(self) -> None:
        assert self._cursor is not None
        self.next_offset = max(self.next_offset, self._cursor.next_offset)
        if self._cursor.left == 0:
            self._cursor = None
            self.next_offset = self._batch_end

    def _is_open(self) -> bool:
        """Have a cursor on the next batch with records to hand out; false at the end."""
        while self._cursor is None:
            # Kept until it is read: a batch that cannot be read is met again by the next call.
            self._entry = self._entry or next(self._headers, None)
            if self._entry is None:
                self.is_done = True
                return False
            self._begin(*self._entry)
            self._entry = None
        return True

    def _begin(self, position: int, header: BatchHeader) -> None:
        if header.next_offset <= self.next_offset:
            return
        batch = self._data[position : position + header.size]
        if self._reading.check_crcs and not crc_is_valid(batch, 0, header.size):
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"The batch of {self._partition} at offset {header.base_offset} does not match its checksum.",
            )
        self._batch_end = header.next_offset
        self.leader_epoch = header.leader_epoch
        if header.is_control or self._is_aborted(header):
            self._leave(header, batch)
            return
        if header.compression:
            payload = decompress(header.compression, batch[HEADER_SIZE:], DECOMPRESSED_BYTES_MAX)
            data, start = bytes(payload), 0
        else:
            data, start = bytes(batch), HEADER_SIZE
        append_time = header.max_timestamp if header.is_log_append_time else None
        reading = self._reading
        self._cursor = BatchCursor(
            data,
            start,
            header.count,
            (*self._partition, reading.key_deserializer, reading.value_deserializer),  # type: ignore[arg-type]
            (header.base_offset, header.base_timestamp, append_time, header.leader_epoch),
            self.next_offset,
        )

    def _is_aborted(self, header: BatchHeader) -> bool:
        if not (self._reading.read_committed and header.is_transactional):
            return False
        while self._aborted and self._aborted[-1].first_offset <= header.last_offset:
            self._aborted_producers.add(self._aborted.pop().producer_id)
        return header.producer_id in self._aborted_producers

    def _leave(self, header: BatchHeader, batch: memoryview) -> None:
        """Pass over a batch; the marker that ends an aborted transaction frees its producer."""
        self.next_offset = header.next_offset
        if header.is_control and self._reading.read_committed:
            while self._aborted and self._aborted[-1].first_offset <= header.last_offset:
                self._aborted_producers.add(self._aborted.pop().producer_id)
            marker = read_marker(batch)
            if marker is not None and marker.kind == ABORT_MARKER:
                self._aborted_producers.discard(header.producer_id)
