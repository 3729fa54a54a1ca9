"""What a partition has already, compared with the batches of a backup: a restore that was interrupted goes on
after it.

Brokers may compress a batch again, set its time, and remove records that are too old or, in a compacted
topic, have been replaced. All else must be as in the backup."""

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.client import Admin
from barnabas.client.admin.batches import ProducerIdentity
from barnabas.client.types import TopicPartition
from barnabas.records.batch import HEADER_SIZE, BatchHeader, Buffer, iter_headers, read_header
from barnabas.records.builder import Record, read_records

FETCH_BYTES = 4 << 20
SEQUENCE_MASK = 0x7FFFFFFF


class StoredBatch(NamedTuple):
    header: BatchHeader
    data: memoryview


class StoredRecords:
    """The records from `start` to before `end`. Ask `has` for one batch of the backup after the other, with
    the offset that it should be at, up to the end."""

    def __init__(
        self, admin: Admin, partition: TopicPartition, start: int, end: int, *, is_compacted: bool
    ) -> None:
        self._admin = admin
        self._partition = partition
        self._start = start
        self.end = end
        self._is_compacted = is_compacted
        self._batches = self._read()
        self._next = next(self._batches, None)
        # Whether there was anything to compare; older records may have been deleted.
        self.is_known = False
        # The producer of the last batch, if it began with sequence 0 at offset 0, as a restore does.
        self.identity: ProducerIdentity | None = None

    def has(self, batch: Buffer, offset: int) -> bool:
        """Whether the records of the batch are here, from this offset on."""
        records = read_header(batch).count
        end = offset + records
        if end > self.end:
            return False
        count = 0
        while self._next is not None and self._next.header.base_offset < end:
            stored = self._next
            is_inside = offset <= stored.header.base_offset and stored.header.next_offset <= end
            if not is_inside or not _is_same(stored, batch, offset):
                return False
            count += stored.header.count
            self._note(stored.header)
            self._next = next(self._batches, None)
        return count == records or end <= self._start or self._is_compacted

    def _note(self, header: BatchHeader) -> None:
        self.is_known = True
        is_of_restore = header.base_sequence == header.base_offset & SEQUENCE_MASK and header.producer_id >= 0
        self.identity = ProducerIdentity(header.producer_id, header.producer_epoch) if is_of_restore else None

    def _read(self) -> Iterator[StoredBatch]:
        offset = self._start
        while offset < self.end:
            read = self._admin.read_batches(self._partition, offset, bytes_max=FETCH_BYTES)
            reached = offset
            for position, header in iter_headers(read.records):
                yield StoredBatch(header, memoryview(read.records)[position : position + header.size])
                reached = header.next_offset
            if reached == offset:
                # Nothing may be read yet, since somebody's transaction is open.
                return
            offset = reached


def _is_same(stored: StoredBatch, batch: Buffer, offset: int) -> bool:
    header, wanted = stored.header, read_header(batch)
    if header.is_control or header.is_transactional:
        return False
    if (
        (header.count, header.base_timestamp, header.compression)
        == (wanted.count, wanted.base_timestamp, wanted.compression)
    ) and stored.data[HEADER_SIZE:] == memoryview(batch)[HEADER_SIZE:]:
        return True
    by_offset = {
        offset + number: _content(record, header) for number, record in enumerate(read_records(batch))
    }
    return all(
        by_offset.get(record.offset) == _content(record, header) for record in read_records(stored.data)
    )


def _content(record: Record, header: BatchHeader) -> tuple[object, ...]:
    timestamp = None if header.is_log_append_time else record.timestamp
    return timestamp, record.key, record.value, record.headers
