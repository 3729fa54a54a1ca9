"""The files of one segment and how they are searched: <base>.log with its sparse indexes beside it.

An index entry is used only if the batch at its position agrees with it. Files are opened when they are first
used and stay open until close_files(), which open_files.py calls when too many are open. So `_fd` may only be
used right after file(): using another segment in between may close it."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.index import CORRUPT, FOUND, find_batch, follow_batches
from barnabas.kernels.log_end import SegmentEnd
from barnabas.log import names
from barnabas.log.disk import Disk, FileHandle, Readers
from barnabas.log.errors import DamagedIndexError
from barnabas.log.index import OffsetIndex, TimeIndex
from barnabas.log.scan import HEADER_WINDOW_BYTES, NO_EPOCH, CorruptRange, Window, headers
from barnabas.log.txn_index import TransactionIndex
from barnabas.records.batch import BatchHeader, crc_is_valid

LONG_MAX = 2**63 - 1
LOCATE_CHUNK_BYTES = 4096 + 128
# The active segment's indexes are in memory; the others are read from their files.
ACTIVE_DESCRIPTORS = 1
INACTIVE_DESCRIPTORS = 3

_BASE_OFFSET = struct.Struct(">q")
_ENDS_AT = struct.Struct(">q15xi")

# An offset and the position of its batch.
Hint: TypeAlias = tuple[int, int]


class StoredSegment(SegmentEnd):
    index: OffsetIndex
    time_index: TimeIndex

    __slots__ = (
        "_directory",
        "_disk",
        "_file",
        "_size_seen",
        "bad",
        "hints",
        "readers",
        "touched",
        "trusted",
        "trusted_from",
        "txn_index",
    )

    def __init__(self, disk: Disk, directory: Path, base_offset: int, config: TopicConfig) -> None:
        self._disk = disk
        self._directory = directory
        self._file: FileHandle | None = None
        self._fd = -1
        self.readers = Readers()
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.size = 0
        self.index = OffsetIndex(disk, self.path(names.INDEX), config.segment_index_bytes)
        self.time_index = TimeIndex(disk, self.path(names.TIME_INDEX), config.segment_index_bytes)
        self.txn_index = TransactionIndex(disk, self.path(names.TXN_INDEX))
        self.active = False
        self.bad: list[CorruptRange] = []
        # Whether the files were used since the last call of was_used(), and the size at that time.
        self.touched = False
        self._size_seen = 0
        # Batch boundaries where the next fetch is likely to begin.
        self.hints: tuple[Hint, Hint] = ((base_offset, 0), (base_offset, 0))
        # Bytes whose headers are known to be in order: everything from `trusted_from` on, which this process
        # wrote or examined, and the range `trusted`.
        self.trusted_from = LONG_MAX
        self.trusted = (0, 0)

    def __repr__(self) -> str:
        return f"Segment({self.path(names.LOG)}, size={self.size})"

    def path(self, suffix: str) -> Path:
        return names.segment_file(self._directory, self.base_offset, suffix)

    # -- files

    def open(self) -> None:
        """Get the size of an existing segment from its file."""
        self.size = self._size_seen = self._disk.size_of(self.path(names.LOG))

    def file(self) -> FileHandle:
        self.touched = True
        return self._file or self._open_file()

    def _open_file(self) -> FileHandle:
        file = self._disk.open(self.path(names.LOG), write=self.active)
        self._keep_open(file)
        return file

    def _keep_open(self, file: FileHandle) -> None:
        self._file, self._fd = file, file.fd
        self._disk.open_files.opened(self, ACTIVE_DESCRIPTORS if self.active else INACTIVE_DESCRIPTORS)

    def handles(self) -> list[FileHandle]:
        """All files of the segment that a flush has to sync. Indexes of the last segment are not among them:
        they are always rebuilt after a crash."""
        files = [self.file()]
        if not self.active:
            files += [handle for index in (self.index, self.time_index) if (handle := index.handle())]
        if self.txn_index.entries():
            files.append(self.txn_index.handle())
        return files

    def was_used(self) -> bool:
        """Whether something was read or written since the last call."""
        used = self.touched or self.size != self._size_seen
        self.touched, self._size_seen = False, self.size
        return used

    def close_files(self) -> None:
        """Close the files until they are needed again. If there are readers, the log file would stay open
        anyway, so it is kept and counted as open."""
        if not self.readers.count:
            self._let_go()

    def _let_go(self) -> None:
        self._file, self._fd = None, -1
        if not self.active:
            self.index.release()
            self.time_index.release()
        self._disk.open_files.closed(self)

    def release(self) -> None:
        """Close the files and forget what was read from them; the segment is inactive afterwards. Slices keep
        their file open."""
        self.active = False
        self._let_go()
        self.txn_index.release()

    def remember(self, offset: int, position: int) -> None:
        """The batch with this first offset begins, or will begin, at this position. Two are remembered:
        where the records of the last fetch began, for other readers of them, and where they ended."""
        if self.hints[0][0] != offset:
            self.hints = ((offset, position), self.hints[0])

    def forget_hints(self) -> None:
        self.hints = ((self.base_offset, 0), (self.base_offset, 0))

    # -- contents

    def window(self, bytes_each: int = HEADER_WINDOW_BYTES) -> Window:
        return Window(self._disk, self.file(), self.size, bytes_each)

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        return headers(self.window(), position, self.bad)

    def read_batch(self, position: int, size: int) -> bytes:
        return self._disk.pread(self.file().fd, size, position)

    def locate(self, offset: int) -> tuple[int, int, int] | None:
        """(position, size, last offset) of the first batch that ends at or after `offset`; None if there is
        none."""
        position = self._index_position(offset - self.base_offset)
        for corrupt in self.bad:
            if corrupt.first_offset <= offset < corrupt.next_offset:
                return corrupt.start, corrupt.end - corrupt.start, corrupt.next_offset - 1
            if corrupt.next_offset <= offset:
                position = max(position, corrupt.end)
        floor = self.base_offset - 1
        while position < self.size:
            chunk = self._disk.pread(self._fd, min(LOCATE_CHUNK_BYTES, self.size - position), position)
            state, step, size, last = find_batch(chunk, offset, floor)
            if state == FOUND:
                if size > self.size - position - step:
                    break
                return position + step, size, last
            if state == CORRUPT or step == 0:
                break
            position += step
            floor = last
        if position >= self.size:
            return None
        raise self._damaged(position)

    def offset_above(self, position: int) -> int | None:
        """An offset from the index that is above all batches before `position`; None if there is no entry."""
        self.file()
        entry = self.index.first_with_value_from(position)
        return None if entry is None else self.base_offset + entry[0]

    def check_order(self, start: int, end: int) -> None:
        """Follow the headers from before `start` to past `end`. The checksum covers neither offsets nor
        leader epochs: clients would not notice a damaged one. Raises CORRUPT_MESSAGE if they do not rise."""
        low, high = self.trusted
        if low <= start and end <= high:
            return
        position, floor, epoch = self._neighbour(start), self.base_offset - 1, NO_EPOCH
        while position < self.size and position <= end:
            chunk = self._disk.pread(self._fd, min(LOCATE_CHUNK_BYTES, self.size - position), position)
            state, step, floor, epoch = follow_batches(chunk, floor, epoch)
            if state == CORRUPT or step == 0 or floor >= self.next_offset:
                raise self._damaged(position)
            position += step
            if any(position == corrupt.start for corrupt in self.bad):
                break
        self.trusted = (low, end) if low <= start <= high else (start, end)

    def _neighbour(self, start: int) -> int:
        """The position of a batch before the one at `start`, from which that can be reached; `start` if there
        is none."""
        (base_offset,) = _BASE_OFFSET.unpack(self.read_batch(start, _BASE_OFFSET.size))
        position = self._index_position(base_offset - 1 - self.base_offset)
        for corrupt in self.bad:
            if corrupt.end <= start:
                position = max(position, corrupt.end)
        return min(position, start)

    def _index_position(self, relative_offset: int) -> int:
        self.file()
        entry = self.index.floor(relative_offset)
        if entry is None:
            return 0
        last_offset = self.base_offset + entry[0]
        position = entry[1]
        if 0 <= position < self.size:
            head = self._disk.pread(self._fd, _ENDS_AT.size, position)
            if len(head) == _ENDS_AT.size:
                base, delta = _ENDS_AT.unpack(head)
                if base + delta == last_offset or self._may_start_at(position, last_offset):
                    return position
        raise DamagedIndexError(
            f"{self.path(names.INDEX)} points at byte {position}, where no such batch begins"
        )

    def _may_start_at(self, position: int, last_offset: int) -> bool:
        """Old versions of Kafka indexed several batches with one entry: the position of the first, the offset
        of the last."""
        window = self.window()
        header = window.header(position)
        if header is None or not self.base_offset <= header.base_offset <= header.last_offset <= last_offset:
            return False
        return crc_is_valid(window.at(position, header.size), 0, header.size)

    def _damaged(self, position: int) -> KafkaError:
        return KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"{self.path(names.LOG).name} is damaged near byte {position}"
        )
