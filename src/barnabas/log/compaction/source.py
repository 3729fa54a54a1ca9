"""Reading the segments of a log that is being compacted, window by window, and how its transactions ended.

Runs in the worker process; reads files and changes nothing."""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path

from barnabas.kernels.batches import scan_batches
from barnabas.log import names
from barnabas.log.compaction.job import CleaningJob, SourceSegment
from barnabas.log.disk import Disk
from barnabas.log.producer_state import aborted_transaction
from barnabas.log.producers import ProducerTable
from barnabas.log.scan import read_range
from barnabas.log.txn_index import AbortedTransaction, TransactionIndex
from barnabas.records.batch import HEADER_SIZE, BatchHeader, crc_is_valid, iter_headers, read_header
from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER, read_marker

WINDOW_BYTES = 1 << 20

# Takes a window of a segment; returns how many bytes of it, in complete batches, were processed.
Process = Callable[[memoryview], int]


class DamagedSourceError(Exception):
    """A segment holds bytes that are not a valid batch; cleaning it would hide that. The text is one
    sentence."""


class Throttle:
    """Limits the rate of reading and writing together, by sleeping."""

    def __init__(
        self,
        bytes_per_second: float,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bytes_per_second = max(1.0, bytes_per_second)
        self._monotonic = monotonic
        self._sleep = sleep
        self._free_at = monotonic()

    def spend(self, size: int) -> None:
        now = self._monotonic()
        self._free_at = max(self._free_at, now) + size / self._bytes_per_second
        if self._free_at > now:
            self._sleep(self._free_at - now)


class SegmentReader:
    def __init__(self, disk: Disk, directory: Path, throttle: Throttle) -> None:
        self._disk = disk
        self._directory = directory
        self._throttle = throttle
        self.bytes_read = 0

    def walk(self, segment: SourceSegment, process: Process) -> None:
        """Call `process` with all batches of the segment, in windows; known bad ranges are skipped."""
        file = self._disk.open(names.segment_file(self._directory, segment.base_offset, names.LOG))
        floor = segment.base_offset - 1
        for start, end in _good_ranges(segment):
            position, needed = start, WINDOW_BYTES
            while position < end:
                window = memoryview(read_range(self._disk, file, position, min(needed, end - position)))
                floor = _check_offsets(segment, window, floor)
                done = process(window)
                if done == 0:
                    needed = self._needed(segment, window, position, end)
                    continue
                self._throttle.spend(done)
                self.bytes_read += done
                position, needed = position + done, WINDOW_BYTES

    def _needed(self, segment: SourceSegment, window: memoryview, position: int, end: int) -> int:
        """How much to read for the first batch, if the window was too small for it."""
        size = read_header(window).size if len(window) >= HEADER_SIZE else end - position + 1
        if not len(window) < size <= end - position:
            raise DamagedSourceError(
                f"there is no complete batch at byte {position} of {segment.base_offset:020d}{names.LOG}"
            )
        return size


def _check_offsets(segment: SourceSegment, window: memoryview, floor: int) -> int:
    """The last offset in the window. Offsets must rise and stay in their segment: checksums do not cover
    them, and with a wrong offset a record would be taken for the newest one of its key."""
    for _, _, base_offset, last_offset_delta, _ in scan_batches(window, 0):
        if not floor < base_offset <= base_offset + last_offset_delta < segment.next_offset:
            raise DamagedSourceError(f"offset {base_offset} cannot follow offset {floor} in this segment")
        floor = base_offset + last_offset_delta
    return floor


def _good_ranges(segment: SourceSegment) -> Iterator[tuple[int, int]]:
    position = 0
    for start, end in sorted(segment.bad):
        yield position, start
        position = end
    yield position, segment.size


def check_crc(batch: memoryview, header: BatchHeader) -> None:
    if not crc_is_valid(batch, 0, header.size):
        raise DamagedSourceError(f"the batch at offset {header.base_offset} does not match its checksum")


class Transactions:
    """The aborted transactions of a log, and the first offset of a transaction without a marker, if any."""

    def __init__(self, aborted: list[AbortedTransaction], undecided_from: int | None) -> None:
        self.undecided_from = undecided_from
        self._by_producer: dict[int, list[AbortedTransaction]] = {}
        for entry in sorted(aborted, key=lambda entry: entry.first_offset):
            self._by_producer.setdefault(entry.producer_id, []).append(entry)

    def aborted(self, producer_id: int, offset: int) -> AbortedTransaction | None:
        """The aborted transaction of the producer that contains the offset."""
        entries = self._by_producer.get(producer_id, [])
        place = bisect_right(entries, offset, key=lambda entry: entry.first_offset)
        if place and offset <= entries[place - 1].last_offset:
            return entries[place - 1]
        return None

    @classmethod
    def of(cls, job: CleaningJob, disk: Disk, reader: SegmentReader) -> "Transactions":
        """If no transaction index has an entry, no transaction was aborted. Otherwise the log itself is read:
        removing records because of a damaged index would lose data."""
        if not any(segment.bad for segment in job.segments) and all(
            _index_is_empty(job, disk, segment) for segment in job.segments
        ):
            return cls([], None)
        table = ProducerTable()
        aborted: list[AbortedTransaction] = []
        for segment in job.segments:
            reader.walk(segment, lambda window: _replay(window, table, aborted))
        return cls(aborted, next(iter(table.ongoing), None))


def _index_is_empty(job: CleaningJob, disk: Disk, segment: SourceSegment) -> bool:
    path = names.segment_file(job.directory, segment.base_offset, names.TXN_INDEX)
    return TransactionIndex(disk, path).entries() == []


def _replay(window: memoryview, table: ProducerTable, aborted: list[AbortedTransaction]) -> int:
    done = 0
    for position, header in iter_headers(window):
        done = position + header.size
        if header.is_transactional:
            batch = window[position:done]
            check_crc(batch, header)
            _apply(batch, header, table, aborted)
    return done


def _apply(
    batch: memoryview, header: BatchHeader, table: ProducerTable, aborted: list[AbortedTransaction]
) -> None:
    """Record a batch in the table; a transaction that it aborts is added to the list."""
    if not header.is_transactional:
        return
    if not header.is_control:
        table.record_batch(header, header.base_offset)
        return
    marker = read_marker(batch) if header.count else None
    completed = table.record_marker(header, marker, header.base_offset) if marker else None
    if completed is not None and completed[0].aborted:
        aborted.append(aborted_transaction(*completed))


class TransactionWalk:
    """Follows the transactions while the log is read from its start: which batches were aborted, and which
    markers have no data left."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._seen_aborted: set[AbortedTransaction] = set()
        self._seen_committed: set[int] = set()
        self._written = ProducerTable()
        # Transactions whose abort marker was written after a batch of theirs: for the new segment's index.
        self.indexed: list[AbortedTransaction] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether the data batch belongs to an aborted transaction."""
        if not header.is_transactional:
            return False
        entry = self._transactions.aborted(header.producer_id, header.base_offset)
        if entry is None:
            self._seen_committed.add(header.producer_id)
            return False
        self._seen_aborted.add(entry)
        return True

    def has_no_data(self, batch: memoryview, header: BatchHeader) -> bool:
        """Whether no batch was seen of the transaction that this control batch ends."""
        marker = read_marker(batch) if header.count else None
        if marker is None:
            return header.count == 0
        if marker.kind == ABORT_MARKER:
            entry = self._transactions.aborted(header.producer_id, header.base_offset)
            return entry not in self._seen_aborted
        if marker.kind == COMMIT_MARKER and header.producer_id in self._seen_committed:
            self._seen_committed.remove(header.producer_id)
            return False
        return True

    def wrote(self, batch: memoryview) -> None:
        """The batch was written to the new segment, perhaps without its records."""
        _apply(batch, read_header(batch), self._written, self.indexed)

    def skip(self, window: memoryview) -> int:
        """Follow the transactions of batches that stay as they are."""
        done = 0
        for position, header in iter_headers(window):
            done = position + header.size
            batch = window[position:done]
            if header.is_control:
                self.has_no_data(batch, header)
            else:
                self.is_aborted(header)
            self.wrote(batch)
        return done
