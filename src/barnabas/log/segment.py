"""One segment of a log: rolling, truncating, rebuilding, and the rare steps of appending. Searching is in
StoredSegment, appending itself in kernels/log_end.py.

Invariants: offsets rise; while the process runs, the file never ends in an incomplete batch. The last segment
of a log is active: its file is open for writing and its index entries are in memory. Owned by one Log."""

from pathlib import Path

from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError
from barnabas.kernels.replica_batches import fitting_run
from barnabas.log import names
from barnabas.log.disk import Disk, Readers, replace_by_prefix
from barnabas.log.errors import DamagedIndexError, TornWriteError
from barnabas.log.scan import CorruptRange
from barnabas.log.stored_segment import LONG_MAX, StoredSegment
from barnabas.records.batch import read_header

RELATIVE_OFFSET_MAX = 2**31 - 1
# A limit below every timestamp: each append then makes the exact check of roll_due().
ALWAYS_CHECK = -2


class Segment(StoredSegment):
    __slots__ = (
        "_preallocated",
        "created_ms",
        "first_timestamp",
        "roll_ms",
        "times_from",
        "timestamps_known",
    )

    def __init__(
        self, disk: Disk, directory: Path, base_offset: int, config: TopicConfig, now_ms: int
    ) -> None:
        super().__init__(disk, directory, base_offset, config)
        self._pwrite = disk.pwrite
        self._bytes_since_index = 0
        self._preallocated = False
        self.index_interval = config.index_interval_bytes
        self.created_ms = now_ms
        self.roll_ms = config.segment_ms
        self.size_limit = config.segment_bytes
        self.offset_limit = min(base_offset + RELATIVE_OFFSET_MAX, LONG_MAX)
        self.timestamp_limit = LONG_MAX
        self.first_timestamp: int | None = None
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        # The timestamps of an inactive segment are read when they are first needed.
        self.timestamps_known = False
        self.times_from = 0

    # -- opening and closing

    def create(self, *, preallocate: bool) -> None:
        """Create the files of a new, empty, active segment."""
        self.active = self.timestamps_known = True
        self._keep_open(self._disk.open(self.path(names.LOG), write=True, create=True))
        self._disk.truncate(self._fd, 0)
        if preallocate:
            self._disk.allocate(self._fd, self.size_limit)
        self._preallocated = preallocate
        self.index.replace([])
        self.time_index.replace([])
        self.txn_index.start([])
        self.trusted_from = 0

    def activate(self) -> bool:
        """Make an existing segment the active one; False if its end does not agree with its indexes."""
        self._let_go()
        self.active = True
        sound = self.index.open_active()
        sound = self.time_index.open_active() and sound
        self.trusted_from = min(self.trusted_from, self.size)
        try:
            return sound and self._read_tail()
        except (KafkaError, DamagedIndexError):
            return False

    def _read_tail(self) -> bool:
        """Find the end offset and the highest timestamp, beginning at the last index entries; False if the
        entries are wrong."""
        last = self.index.last()
        start = self._index_position(last[0]) if last else 0
        self._bytes_since_index = self.size - start
        newest = self.time_index.last()
        if newest is not None:
            named = self.locate(self.base_offset + newest[1])
            header = self.window().header(named[0]) if named else None
            if named is None or header is None or header.max_timestamp != newest[0]:
                return False
            self.max_timestamp, self.max_timestamp_offset = newest[0], header.last_offset
            self.times_from = named[0]
        for _, header in self.headers(start):
            self.next_offset = header.next_offset
            self._note_timestamp(header.max_timestamp, header.last_offset)
        self._load_first_timestamp()
        # The batches between the two entries are read when timestamps are needed, not at every start.
        self.timestamps_known = newest is None or self.times_from >= start
        return newest is not None or self.max_timestamp < 0 or last is None

    def finish(self) -> None:
        """Become inactive: the indexes are written, with the highest timestamp for retention and searches."""
        self.write_indexes()
        if self._preallocated:
            self._disk.truncate(self.file().fd, self.size)
            self._preallocated = False
        self.index.seal()
        self.time_index.seal()
        self.active = False
        if self._file is not None:
            self._keep_open(self._file)

    def write_indexes(self) -> None:
        self.add_time_entry()
        self.index.write_pending()
        self.time_index.write_pending()
        self.txn_index.write_pending()

    # -- appending

    def append_run(self, data: memoryview, start: int, end: int) -> tuple[int, int]:
        """Write the checked batches in data[start:end] that fit, in one write; the first must fit. Returns
        where they end in `data`, and their last offset. If it fails, nothing has changed."""
        if self.size == 0:
            self._start_roll_timer(read_header(data, start).max_timestamp)
        stop, last_offset, max_timestamp, max_timestamp_offset, since_index, entries = fitting_run(
            data,
            start,
            end,
            self.size,
            self.size_limit,
            self.offset_limit,
            self.timestamp_limit,
            self.index_interval,
            self._bytes_since_index,
            min(
                self.index.entries_max - len(self.index),
                self.time_index.entries_max - 1 - len(self.time_index),
            ),
            self.max_timestamp,
            self.max_timestamp_offset,
        )
        self.write_at_end(data[start:stop])
        self.size += stop - start
        self.next_offset = last_offset + 1
        for entry_offset, position, self.max_timestamp, self.max_timestamp_offset in entries:
            self.add_entry(entry_offset, position)
        self.max_timestamp, self.max_timestamp_offset = max_timestamp, max_timestamp_offset
        self._bytes_since_index = since_index
        return stop, last_offset

    # -- kernels/log_end.py calls these

    def _cut_back(self, size: int) -> None:
        try:
            self._disk.truncate(self._fd, size)
        except OSError as problem:
            raise TornWriteError(f"a failed write could not be undone: {problem}") from problem

    def _note_timestamp(self, timestamp: int, last_offset: int) -> None:
        if timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = timestamp, last_offset

    # -- rolling

    def _start_roll_timer(self, timestamp: int) -> None:
        self.first_timestamp = timestamp
        self.timestamp_limit = min(timestamp + self.roll_ms, LONG_MAX) if timestamp >= 0 else ALWAYS_CHECK

    def set_limits(self, size_limit: int, roll_ms: int) -> None:
        """Take changed settings of the topic."""
        self.size_limit, self.roll_ms = size_limit, roll_ms
        if self.first_timestamp is not None:
            self._start_roll_timer(self.first_timestamp)

    def _load_first_timestamp(self) -> None:
        header = self.window().header(0) if self.size else None
        if header is not None:
            self._start_roll_timer(header.max_timestamp)

    def roll_due(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether a batch of `size` bytes must go to a new segment."""
        if self.size == 0:
            return last_offset > self.offset_limit
        if self.first_timestamp is not None and self.first_timestamp >= 0:
            waited = max_timestamp - self.first_timestamp
        else:
            waited = now_ms - self.created_ms
        return waited > self.roll_ms or size > self.size_limit - self.size or last_offset > self.offset_limit

    # -- rebuilding

    def adopt(self, size: int, next_offset: int, bad: list[CorruptRange]) -> None:
        """Take the bounds that an examination found; bytes after `size` are cut off."""
        if size < self.size:
            file = self.file() if self.active else self._disk.open(self.path(names.LOG), write=True)
            self._disk.truncate(file.fd, size)
        self.size, self.next_offset, self.bad = size, next_offset, bad
        self.trusted_from = 0
        self.forget_hints()
        self._bytes_since_index = 0

    def adopt_timestamps(self, first: int | None, highest: int, highest_offset: int) -> None:
        self.max_timestamp, self.max_timestamp_offset = highest, highest_offset
        self.timestamps_known = True
        if first is not None:
            self._start_roll_timer(first)

    def adopt_indexes(self, entries: list[tuple[int, int]], time_entries: list[tuple[int, int]]) -> None:
        self.index.adopt(entries)
        self.time_index.adopt(time_entries)
        if self.active:
            # They are written with later entries or when the segment ends: after a crash they are rebuilt
            # again.
            self._bytes_since_index = self.size - (entries[-1][1] if entries else 0)
        else:
            self.index.seal()
            self.time_index.seal()

    # -- truncating

    def truncate(self, position: int, next_offset: int) -> None:
        """Cut the active segment at a batch boundary, in the file and in the indexes.

        A reader may have been promised the bytes that are cut off. Then readers keep the old file, and a copy
        takes its place."""
        self.file()
        if self._file is None:
            raise RuntimeError(f"{self} is not open although file() was called")
        if self.readers.count:
            self._keep_open(replace_by_prefix(self._disk, self._file, self.path(names.LOG), position))
            self.readers = Readers()
        else:
            self._disk.truncate(self._fd, position)
        self.size, self.next_offset = position, next_offset
        self.bad = [corrupt for corrupt in self.bad if corrupt.end <= position]
        self._cut_indexes(next_offset - self.base_offset)
        self.txn_index.truncate(next_offset)
        self.forget_hints()
        self._bytes_since_index = 0
        if position == 0:
            self.first_timestamp, self.timestamp_limit = None, LONG_MAX

    def _cut_indexes(self, relative_end: int) -> None:
        self.index.cut_keys_from(relative_end)
        self.time_index.cut_values_from(relative_end)
        newest = self.time_index.last()
        self.max_timestamp, self.max_timestamp_offset = newest or (-1, 0)
        self.max_timestamp_offset += self.base_offset
        start = self.index.floor(self.max_timestamp_offset - self.base_offset) if newest else None
        for _, header in self.headers(start[1] if start else 0):
            self._note_timestamp(header.max_timestamp, header.last_offset)
