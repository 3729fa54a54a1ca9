"""The sparse indexes beside a segment: .index (relative offset, position) and .timeindex (timestamp,
relative offset), in Kafka's binary forms.

The active segment's entries are in memory and are written in chunks; the file is opened for each chunk. Files
are not mapped: writing to a mapped file on a full disk kills the process with SIGBUS. An inactive index stays
on disk; the first search opens it, and searches use pread. An index is only a hint: the segment uses an entry
if the batch at its position agrees with it, and otherwise rebuilds the file."""

import logging
import struct
from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import ClassVar

from barnabas.kernels.log_end import IndexEnd
from barnabas.log.disk import Disk, FileHandle, read_file, write_fully
from barnabas.log.errors import DamagedIndexError

logger = logging.getLogger(__name__)


class SparseIndex(IndexEnd):
    """Entries of (key, value), keys rising. `entries_max` is how many the configured file size holds."""

    entry: ClassVar[struct.Struct]
    key_type: ClassVar[str]

    _keys: "array[int] | None"
    _values: "array[int]"

    __slots__ = ("_count", "_disk", "_file", "_path", "_torn")

    def __init__(self, disk: Disk, path: Path, bytes_max: int) -> None:
        self._disk = disk
        self._path = path
        self.entries_max = bytes_max // self.entry.size
        self._file: FileHandle | None = None
        self._keys = None
        self._values = array("i")
        self._count = 0
        self._written = 0
        # Whether the file may hold other bytes after the entries that were written.
        self._torn = False

    def __repr__(self) -> str:
        return str(self._path)

    def __len__(self) -> int:
        if self._keys is not None:
            return len(self._keys)
        self._ready()
        return self._count

    def _ready(self) -> None:
        if self._file is None:
            self.open()

    def open(self) -> bool:
        """Open for searching on disk; False if the file is missing or its last entry is incomplete."""
        self.release()
        try:
            self._file = self._disk.open(self._path)
        except FileNotFoundError:
            return False
        self._count, rest = divmod(self._disk.size(self._file.fd), self.entry.size)
        return rest == 0

    def open_active(self) -> bool:
        """Read all entries into memory and be ready to append; False as for open()."""
        data = read_file(self._disk, self._path)
        self.release()
        whole = len(data) - len(data) % self.entry.size if data else 0
        self._fill(list(self.entry.iter_unpack(data[:whole])) if data else [])
        self._written = len(self)
        self._torn = data is None or whole < len(data)
        return not self._torn

    def replace(self, entries: list[tuple[int, int]]) -> None:
        """Hold exactly these entries, in memory and on disk; the index is active afterwards."""
        self.adopt(entries)
        self.write_pending()

    def adopt(self, entries: list[tuple[int, int]]) -> None:
        """Hold exactly these entries in memory; the next write replaces the content of the file."""
        self.release()
        self._fill(entries)
        self._torn = True

    def _write_chunk(self) -> None:
        """An append calls this when many entries are pending."""
        try:
            self.write_pending()
        except OSError as problem:
            # The entries stay pending: an index that cannot be written must not fail an append.
            logger.warning("index %s could not be written and will be tried again: %s", self._path, problem)

    def last(self) -> tuple[int, int] | None:
        return self.get(len(self) - 1) if len(self) else None

    def get(self, slot: int) -> tuple[int, int]:
        if self._keys is not None:
            return self._keys[slot], self._values[slot]
        key, value = self._read(slot)
        return key, value

    def floor(self, key: int) -> tuple[int, int] | None:
        """The entry with the largest key <= `key`."""
        if self._keys is not None:
            slot = bisect_right(self._keys, key)
            return (self._keys[slot - 1], self._values[slot - 1]) if slot else None
        self._ready()
        floor: tuple[int, int] | None = None
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            candidate = self._read(middle)
            if candidate[0] <= key:
                floor, low = candidate, middle + 1
            else:
                high = middle
        return floor

    def first_with_value_from(self, value: int) -> tuple[int, int] | None:
        """The first entry whose value is at least `value`; values rise like keys."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.get(middle)[1] < value:
                low = middle + 1
            else:
                high = middle
        return self.get(low) if low < len(self) else None

    def cut_keys_from(self, key: int) -> None:
        """Drop the entries of an active index from the first key >= `key` on."""
        if self._keys is not None:
            self._keep(bisect_left(self._keys, key))

    def cut_values_from(self, value: int) -> None:
        self._keep(bisect_left(self._values, value))

    def _keep(self, entries: int) -> None:
        if self._keys is None:
            raise RuntimeError(f"{self._path} is not active")
        del self._keys[entries:], self._values[entries:]
        if self._written > entries:
            self._torn, self._written = True, entries
            self._cut_file()

    def _cut_file(self) -> FileHandle:
        """Open the file for writing and cut it after the entries that were written."""
        file = self._disk.open(self._path, write=True, create=True)
        if self._torn:
            self._disk.truncate(file.fd, self._written * self.entry.size)
            self._torn = False
        return file

    def write_pending(self) -> None:
        if self._keys is None or (self._written == len(self._keys) and not self._torn):
            return
        file = self._cut_file()
        pairs = zip(self._keys[self._written :], self._values[self._written :], strict=True)
        data = b"".join([self.entry.pack(key, value) for key, value in pairs])
        self._torn = True
        write_fully(self._disk, file.fd, data, self._written * self.entry.size)
        self._written, self._torn = len(self._keys), False

    def seal(self) -> None:
        """Write all entries and free their memory: from now on the index is searched on disk."""
        if self._keys is None:
            return
        self.write_pending()
        self.release()

    def handle(self) -> FileHandle | None:
        """The file, for a sync; None if there is none."""
        if self._file is not None:
            return self._file
        try:
            return self._disk.open(self._path)
        except FileNotFoundError:
            return None

    def release(self) -> None:
        """Close the file and drop entries that are not written."""
        self._file, self._keys, self._values, self._count = None, None, array("i"), 0
        self._written, self._torn = 0, False

    def _fill(self, entries: list[tuple[int, int]]) -> None:
        self._keys = array(self.key_type, [entry[0] for entry in entries])
        self._values = array("i", [entry[1] for entry in entries])

    def _read(self, slot: int) -> tuple[int, int]:
        if self._file is None:
            raise RuntimeError(f"{self._path} is not open")
        data = self._disk.pread(self._file.fd, self.entry.size, slot * self.entry.size)
        if len(data) < self.entry.size:
            raise DamagedIndexError(f"{self._path} ends before entry {slot}")
        key, value = self.entry.unpack(data)
        return key, value


class OffsetIndex(SparseIndex):
    """The key is the last offset of a batch, relative to the segment's base; the value is its position."""

    entry = struct.Struct(">ii")
    key_type = "i"
    __slots__ = ()


class TimeIndex(SparseIndex):
    """The key is the highest timestamp so far; the value is the relative last offset of the batch that has
    it."""

    entry = struct.Struct(">qi")
    key_type = "q"
    __slots__ = ()
