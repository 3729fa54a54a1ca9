"""Appends the batches of a backup to a partition that has none of them yet, or the first ones from an
interrupted restore, and finds the new offsets of groups.

A batch is sent as it was, with another header: producer, sequence, no transaction. Only a batch with gaps,
which compaction or a deletion of records has left, is made again: brokers accept no gaps. So offsets move
when something was left out before them; those of groups are looked up while their batch passes."""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from barnabas.cli.backup.comparing import SEQUENCE_MASK, StoredRecords
from barnabas.cli.backup.contents import READ_BYTES, PartitionCopy, Place
from barnabas.cli.backup.parallel import Advance
from barnabas.cli.failures import ToolError
from barnabas.client import Admin
from barnabas.client.admin.batches import ProducerIdentity
from barnabas.client.types import TopicPartition
from barnabas.records.batch import (
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    NO_LEADER_EPOCH,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    crc_is_valid,
    read_header,
)
from barnabas.records.builder import build_batch, read_records, seal

# For batches that are only compared.
NOBODY = ProducerIdentity(-1, -1)
# About so many bytes of a partition are in memory.
WINDOW_BYTES = 4 << 20


class Sendable(NamedTuple):
    """A batch for a broker, and the offsets that its records had."""

    batch: bytearray
    offsets: range | list[int]


class PartitionRestore:
    """`wanted`: offsets of the source whose new places are to be found. `places` has them after `run`."""

    def __init__(
        self,
        admin: Admin,
        place: Place,
        copy: PartitionCopy,
        target: TopicPartition,
        wanted: set[int],
    ) -> None:
        self._admin = admin
        self._place = place
        self._copy = copy
        self.target = target
        self._wanted = sorted(wanted, reverse=True)
        # Where the next batch is: the number of its file, and its position there.
        self._file_number = 0
        self._position = 0
        self._sequence = 0
        self.places: dict[int, int] = {}
        self.records = 0
        # How many of them were there before this restore.
        self.kept = 0
        # Whose batches the last ones were. A request of an interrupted restore that is still on its way is
        # then one that the broker knows already, or does not expect: no record is stored twice.
        self.identity: ProducerIdentity | None = None

    def compare(self, stored: StoredRecords, advance: Advance) -> str | None:
        """Go over the records that the partition has already; says what is wrong if they are not the first
        ones of the backup."""
        for batch in self._batches():
            advance(len(batch))
            made = renumbered(batch, self._copy.start, NOBODY, 0)
            if made is None:
                continue
            if not stored.has(made.batch, self.records):
                break
            self._passed(made.offsets)
            if self.records == stored.end:
                break
        if self.records != stored.end:
            return f"{self.target} has other records than the backup, from offset {self.records} on"
        if not stored.is_known:
            return f"{self.target} has had records, and none is left to compare with the backup"
        self.kept, self.identity = self.records, stored.identity
        self._sequence = self.records & SEQUENCE_MASK
        return None

    def run(self, identity: ProducerIdentity, advance: Advance) -> None:
        """`advance` is called with the number of bytes that were read."""
        window: list[Sendable] = []
        waiting_bytes = 0
        for batch in self._batches():
            advance(len(batch))
            sendable = self._sendable(batch, identity)
            if sendable is not None:
                window.append(sendable)
                waiting_bytes += len(sendable.batch)
            if waiting_bytes >= WINDOW_BYTES:
                self._append(window)
                window, waiting_bytes = [], 0
        self._append(window)
        # Everything that was left out has ended, so these groups have read all that there is.
        for offset in self._wanted:
            self.places[offset] = self.records

    def _batches(self) -> Iterator[bytes]:
        """The batches that come next."""
        for chunk in self._copy.chunks[self._file_number :]:
            with self._place.reading(chunk.file) as file:
                _skip(file, self._position)
                while batch := _next_batch(file, chunk.file):
                    self._position += len(batch)
                    yield batch
            self._file_number, self._position = self._file_number + 1, 0

    def _sendable(self, batch: bytes, identity: ProducerIdentity) -> Sendable | None:
        made = renumbered(batch, self._copy.start, identity, self._sequence)
        if made is not None:
            self._sequence = (self._sequence + len(made.offsets)) & SEQUENCE_MASK
        return made

    def _append(self, window: list[Sendable]) -> None:
        if not window:
            return
        bases = self._admin.append_batches(self.target, [each.batch for each in window])
        for base, sent in zip(bases, window, strict=True):
            if base != self.records:
                raise ToolError(
                    f"{self.target}: a batch was stored at offset {base} instead of {self.records}: somebody "
                    "else writes to the topic. Stop them, delete the topic, and restore it again."
                )
            self._passed(sent.offsets)

    def _passed(self, offsets: range | list[int]) -> None:
        self._find_places(offsets)
        self.records += len(offsets)

    def _find_places(self, offsets: range | list[int]) -> None:
        """The new offset of a group is that of the first record that it has not read."""
        while self._wanted and self._wanted[-1] <= offsets[-1]:
            wanted = self._wanted.pop()
            before = sum(offset < wanted for offset in offsets) if isinstance(offsets, list) else None
            self.places[wanted] = self.records + (max(0, wanted - offsets[0]) if before is None else before)


def renumbered(batch: bytes, start: int, identity: ProducerIdentity, sequence: int) -> Sendable | None:
    """The batch with the records from `start` on, for a producer; None if there are none."""
    header = read_header(batch)
    if (
        header.last_offset_delta + 1 == header.count
        and header.base_offset >= start
        and not header.has_delete_horizon
    ):
        new = header._replace(
            base_offset=0,
            leader_epoch=NO_LEADER_EPOCH,
            attributes=header.attributes & ~(TRANSACTIONAL_FLAG | LOG_APPEND_TIME_FLAG),
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=sequence,
        )
        offsets = range(header.base_offset, header.next_offset)
        return Sendable(seal(new, memoryview(batch)[HEADER_SIZE:]), offsets)
    return _made_again(batch, header, start, identity, sequence)


def _made_again(
    batch: bytes, header: BatchHeader, start: int, identity: ProducerIdentity, sequence: int
) -> Sendable | None:
    records = [record for record in read_records(batch) if record.offset >= start]
    if not records:
        return None
    made = build_batch(
        [(record.timestamp, record.key, record.value, record.headers) for record in records],
        compression=header.compression,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        base_sequence=sequence,
    )
    return Sendable(made, [record.offset for record in records])


def _next_batch(file: BinaryIO, name: str) -> bytes:
    """The next batch of the file; empty at its end."""
    head = _exactly(file, HEADER_SIZE)
    if not head:
        return b""
    size = read_header(head).length + LOG_OVERHEAD if len(head) == HEADER_SIZE else -1
    batch = head + _exactly(file, size - HEADER_SIZE) if size >= HEADER_SIZE else b""
    if not crc_is_valid(batch, 0, size):
        raise ToolError(f"{name} is damaged: a batch does not match its checksum.")
    return batch


def _skip(file: BinaryIO, size: int) -> None:
    """By reading: a stream of an object store cannot be moved."""
    while size > 0 and (part := file.read(min(size, READ_BYTES))):
        size -= len(part)


def _exactly(file: BinaryIO, size: int) -> bytes:
    """So many bytes, or fewer at the end; a stream of an object store may give less than it is asked for."""
    parts: list[bytes] = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
