"""Walking over the batches of one segment file: by header for a search, by every byte for a recovery.

Reads through the Disk and changes nothing. Lengths are never trusted: a walk ends at bytes that cannot be a
batch."""

import errno
import os
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.recovery import sound_run
from barnabas.log.disk import Disk, FileHandle
from barnabas.records.batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, BatchHeader, crc_is_valid

WINDOW_BYTES = 1 << 20
# Small, so that a walk by header does not read the large batches it steps over.
HEADER_WINDOW_BYTES = 8192
NO_EPOCH = -1


class CorruptRange(NamedTuple):
    """Bytes [start, end) of the segment at `base_offset` are not valid batches. They held the offsets from
    `first_offset` to below `next_offset`."""

    base_offset: int
    start: int
    end: int
    first_offset: int
    next_offset: int


class Window:
    """A moving view of a file: `at(position, size)` reads the file only for bytes that it does not have
    yet."""

    def __init__(self, disk: Disk, file: FileHandle, end: int, window_bytes: int = WINDOW_BYTES) -> None:
        self._disk = disk
        self._file = file
        self._window_bytes = window_bytes
        self._start = 0
        self._data = memoryview(b"")
        self.end = end

    def at(self, position: int, size: int) -> memoryview:
        """`size` bytes from `position`; fewer at the end of the segment."""
        size = min(size, self.end - position)
        low = position - self._start
        if low < 0 or low + size > len(self._data):
            needed = min(max(size, self._window_bytes), self.end - position)
            self._data = memoryview(read_range(self._disk, self._file, position, needed))
            self._start, low = position, 0
        return self._data[low : low + size]

    def rest(self, position: int) -> memoryview:
        """The bytes from `position` on that are in memory; a new window is read if they are less than a
        header."""
        low = position - self._start
        if low < 0 or len(self._data) - low < HEADER_SIZE:
            self.at(position, self._window_bytes)
            low = 0
        return self._data[low:]

    def header(self, position: int) -> BatchHeader | None:
        """The header at `position`, or None if there cannot be a complete batch."""
        data = self.at(position, HEADER_SIZE)
        if len(data) < HEADER_SIZE:
            return None
        header = BatchHeader(*HEADER.unpack_from(data))
        fits = HEADER_SIZE <= header.length + LOG_OVERHEAD <= self.end - position
        plausible = header.magic == MAGIC and header.base_offset >= 0 and header.last_offset_delta >= 0
        return header if fits and plausible else None


def read_range(disk: Disk, file: FileHandle, position: int, size: int) -> bytes:
    """Exactly `size` bytes; EIO if the file is shorter than expected."""
    data = disk.pread(file.fd, size, position)
    while len(data) < size:
        more = disk.pread(file.fd, size - len(data), position + len(data))
        if not more:
            raise OSError(
                errno.EIO, f"the segment ends before byte {position + size}: {os.strerror(errno.EIO)}"
            )
        data += more
    return data


def headers(window: Window, position: int, bad: list[CorruptRange]) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch from `position` on; known bad ranges are skipped.

    Raises CORRUPT_MESSAGE at bytes that cannot be a batch."""
    skip = {corrupt.start: corrupt.end for corrupt in bad}
    while position < window.end:
        if position in skip:
            position = skip[position]
            continue
        header = window.header(position)
        if header is None:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the log is damaged at byte {position} of a segment")
        yield position, header
        position += header.length + LOG_OVERHEAD


class Verified(NamedTuple):
    """A batch that has not changed since it was appended."""

    position: int
    header: BatchHeader


class Run(NamedTuple):
    """Valid batches that follow each other; `entries` are index entries for some of them, see the kernel."""

    end: int
    next_offset: int
    max_timestamp: int
    max_timestamp_offset: int
    has_producers: bool
    entries: list[tuple[int, int, int, int]]


class Damaged(NamedTuple):
    """Bytes that are not a batch. `resumed` is the position of the next valid batch, or None."""

    position: int
    first_offset: int
    resumed: int | None


class Verifier:
    """Checks every byte of a segment that recovery cannot trust.

    The checksum covers neither offset nor leader epoch, so these are compared with the neighbours: both rise
    along a log. A batch after a gap is accepted if the next batch confirms it, or, at the very end, if `gaps`
    says that this log may have gaps because it is compacted."""

    def __init__(self, window: Window, base_offset: int, limit: int, *, gaps: bool) -> None:
        self._window = window
        self._limit = limit
        self._gaps = gaps
        self._floor = base_offset - 1
        self._epoch = NO_EPOCH
        self._position = 0

    def walk(self) -> Iterator[Verified | Damaged]:
        while self._position < self._window.end:
            position = self._position
            header = self._sound(position)
            if header is not None and self._credible(position, header):
                self._floor = header.last_offset
                self._epoch = header.leader_epoch
                self._position = position + header.size
                yield Verified(position, header)
                continue
            resumed = self._resume(position, header)
            yield Damaged(position, self._floor + 1, resumed)
            if resumed is None:
                return
            self._position = resumed

    def run(
        self, index_interval: int, indexed_position: int, max_timestamp: int, max_timestamp_offset: int
    ) -> Run | None:
        """Skip the batches after a verified one that are valid, follow without a gap, have the same epoch and
        are in memory; `walk` goes on after them. The kernel explains the arguments."""
        start = self._position
        if start >= self._window.end:
            return None
        size, floor, highest, highest_offset, has_producers, entries = sound_run(
            self._window.rest(start),
            start,
            self._floor,
            self._epoch,
            self._limit,
            index_interval,
            indexed_position,
            max_timestamp,
            max_timestamp_offset,
            crc32c,
        )
        if size == 0:
            return None
        self._position, self._floor = start + size, floor
        return Run(self._position, floor + 1, highest, highest_offset, has_producers, entries)

    def _sound(self, position: int) -> BatchHeader | None:
        """The header at `position` if the batch is complete, unchanged and above all offsets so far."""
        header = self._window.header(position)
        if header is None or not self._floor < header.base_offset <= header.last_offset < self._limit:
            return None
        if header.leader_epoch < NO_EPOCH:
            return None
        data = self._window.at(position, header.size)
        return header if crc_is_valid(data, 0, header.size) else None

    def _credible(self, position: int, header: BatchHeader) -> bool:
        """Whether the offset and epoch of a valid batch agree with its neighbours."""
        gap = header.base_offset != self._floor + 1
        if not gap and header.leader_epoch == self._epoch:
            return True
        following = position + header.size
        successor = self._sound(following) if following < self._window.end else None
        if successor is None:
            return header.leader_epoch >= self._epoch and (not gap or self._gaps or self._floor < 0)
        # If the neighbours' epochs are in order and this epoch is not between them, this batch is damaged.
        before, after = self._epoch, successor.leader_epoch
        outlier = before <= after and not before <= header.leader_epoch <= after
        return successor.base_offset > header.last_offset and not outlier

    def _resume(self, position: int, header: BatchHeader | None) -> int | None:
        """The position of the next valid batch after the bad bytes at `position`."""
        stated = header or self._window.header(position)
        if stated is not None:
            following = position + stated.size
            if following < self._window.end and self._sound(following) is not None:
                return following
        return self._search(position + 1)

    def _search(self, position: int) -> int | None:
        """The first position from here on where a valid batch starts that is followed by another batch header
        or by the end.

        The second condition is for a batch that somebody sent as the value of a record: it is not taken for a
        batch of the log."""
        magic_at = LOG_OVERHEAD + 4
        while position + HEADER_SIZE <= self._window.end:
            data = bytes(self._window.at(position, WINDOW_BYTES))
            place = data.find(MAGIC, magic_at)
            while place >= 0:
                candidate = position + place - magic_at
                if self._starts_a_run(candidate):
                    return candidate
                place = data.find(MAGIC, place + 1)
            position += max(1, len(data) - magic_at)
        return None

    def _starts_a_run(self, candidate: int) -> bool:
        header = self._sound(candidate)
        if header is None:
            return False
        following = candidate + header.size
        rest = self._window.at(following, HEADER_SIZE)
        if len(rest) < HEADER_SIZE:
            return True
        after = BatchHeader(*HEADER.unpack_from(rest))
        return (after.magic == MAGIC and after.base_offset > header.last_offset) or not any(rest)
