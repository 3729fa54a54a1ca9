"""The .txnindex of a segment: transactions whose abort marker is in the segment, for consumers with
isolation.level=read_committed.

Kafka creates the file with the first abort. Here every segment has one, even if it is empty: so a missing
file means that it was lost, and it is rebuilt from the log. If a write fails, the entry stays pending and the
append succeeds. The file is open only while it is read or written."""

import logging
import struct
from pathlib import Path
from typing import NamedTuple

from barnabas.log.disk import Disk, FileHandle, read_file, write_fully

logger = logging.getLogger(__name__)

VERSION = 0
_ENTRY = struct.Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    __slots__ = ("_disk", "_entries", "_path", "_written", "verified")

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._path = path
        self._entries: list[AbortedTransaction] | None = None
        self._written = 0
        # Whether the loaded entries were compared with the log; see transactions.py.
        self.verified = False

    def entries(self) -> list[AbortedTransaction] | None:
        """The entries of the file; None if it is missing or damaged."""
        if self._entries is None:
            self._load()
        return self._entries

    def start(self, entries: list[AbortedTransaction]) -> None:
        """Hold exactly these entries, in memory and on disk."""
        if self._size() != 0:
            file = self.handle()
            self._disk.truncate(file.fd, 0)
        self._entries = entries
        self.verified = True
        self._written = 0
        self.write_pending()

    def append(self, transaction: AbortedTransaction) -> None:
        if self._entries is None:
            raise RuntimeError(f"{self._path} has not been loaded")
        self._entries.append(transaction)
        try:
            self.write_pending()
        except OSError as problem:
            logger.warning(
                "transaction index %s could not be written and will be tried again: %s", self._path, problem
            )

    def truncate(self, offset: int) -> None:
        """Forget transactions that ended at or after `offset`."""
        entries = self.entries()
        if entries:
            self.start([entry for entry in entries if entry.last_offset < offset])

    def write_pending(self) -> None:
        if self._entries is None or self._written == len(self._entries):
            return
        data = b"".join([_ENTRY.pack(VERSION, *entry) for entry in self._entries[self._written :]])
        file = self.handle()
        write_fully(self._disk, file.fd, data, self._written * _ENTRY.size)
        self._written = len(self._entries)

    def handle(self) -> FileHandle:
        """The file, open for writing or a sync."""
        return self._disk.open(self._path, write=True, create=True)

    def release(self) -> None:
        self._entries, self._written, self.verified = None, 0, False

    def _size(self) -> int | None:
        """The size of the file in bytes; None if there is no file."""
        try:
            return self._disk.size_of(self._path)
        except FileNotFoundError:
            return None

    def _load(self) -> None:
        # Most files are empty; these are not read.
        data = b"" if self._size() == 0 else read_file(self._disk, self._path)
        if data is None or len(data) % _ENTRY.size:
            return
        rows = list(_ENTRY.iter_unpack(data))
        ends = [row[3] for row in rows]
        if any(row[0] != VERSION or row[2] > row[3] for row in rows) or ends != sorted(set(ends)):
            logger.error("transaction index %s is damaged", self._path)
            return
        self._entries = [AbortedTransaction(*row[1:]) for row in rows]
        self._written = len(rows)
