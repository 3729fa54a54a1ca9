"""The segment that compaction writes: <base>.log.cleaned with its three indexes, synced at the end.

Runs in the worker process; writes only these files."""

from pathlib import Path

from barnabas.kernels.batches import scan_batches
from barnabas.log import names
from barnabas.log.compaction.job import CleaningJob
from barnabas.log.disk import Data, Disk, write_fully
from barnabas.log.index import OffsetIndex, SparseIndex, TimeIndex
from barnabas.log.txn_index import AbortedTransaction, TransactionIndex

WRITE_BYTES = 1 << 20
POSITION_MAX = 2**31 - 1


class CleanedSegment:
    def __init__(self, disk: Disk, job: CleaningJob, base_offset: int) -> None:
        self._disk = disk
        self._job = job
        self.base_offset = base_offset
        self.remove()
        self._file = disk.open(self._path(names.LOG), write=True, create=True)
        self._pending = bytearray()
        self._written = 0
        self._indexed_at = 0
        self._entries: list[tuple[int, int]] = []
        self._time_entries: list[tuple[int, int]] = []
        self.next_offset = base_offset
        self.first_timestamp: int | None = None
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset

    @property
    def size(self) -> int:
        return self._written + len(self._pending)

    def _path(self, suffix: str) -> Path:
        path = names.segment_file(self._job.directory, self.base_offset, suffix)
        return path.with_name(path.name + names.CLEANED)

    def remove(self) -> None:
        """Unlink the files. An abandoned job that still has them open does no harm then."""
        for suffix in names.SEGMENT_SUFFIXES:
            self._disk.unlink(self._path(suffix))

    def append(self, batches: Data) -> None:
        """Add complete batches."""
        start = self.size
        if start + len(batches) > POSITION_MAX:
            raise ValueError(f"the segment at {self.base_offset} would be too large for its index")
        for position, _, base_offset, last_offset_delta, max_timestamp in scan_batches(batches, 0):
            self._note(start + position, base_offset + last_offset_delta, max_timestamp)
        self._pending += batches
        if len(self._pending) >= WRITE_BYTES:
            self._write()

    def _note(self, position: int, last_offset: int, max_timestamp: int) -> None:
        self.next_offset = last_offset + 1
        if self.first_timestamp is None:
            self.first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = max_timestamp, last_offset
        if position - self._indexed_at > self._job.index_interval_bytes:
            self._entries.append((last_offset - self.base_offset, position))
            self._note_time()
            self._indexed_at = position

    def _note_time(self) -> None:
        newest = self._time_entries[-1][0] if self._time_entries else -1
        if self.max_timestamp > newest:
            self._time_entries.append((self.max_timestamp, self.max_timestamp_offset - self.base_offset))

    def _write(self) -> None:
        write_fully(self._disk, self._file.fd, self._pending, self._written)
        self._written += len(self._pending)
        self._pending = bytearray()

    def finish(self, aborted: list[AbortedTransaction]) -> None:
        """Write what is pending and the indexes, and sync all files."""
        self._write()
        self._disk.fsync(self._file.fd)
        self._note_time()
        index = OffsetIndex(self._disk, self._path(names.INDEX), self._job.segment_index_bytes)
        self._write_index(index, self._entries)
        time_index = TimeIndex(self._disk, self._path(names.TIME_INDEX), self._job.segment_index_bytes)
        self._write_index(time_index, self._time_entries)
        transactions = TransactionIndex(self._disk, self._path(names.TXN_INDEX))
        transactions.start(aborted)
        handle = transactions.handle()
        if handle is not None:
            self._disk.fsync(handle.fd)
        self._disk.fsync_dir(self._job.directory)

    def _write_index(self, index: SparseIndex, entries: list[tuple[int, int]]) -> None:
        index.replace(entries)
        handle = index.handle()
        if handle is not None:
            self._disk.fsync(handle.fd)
