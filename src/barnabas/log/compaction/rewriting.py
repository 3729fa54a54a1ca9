"""Rewriting the segments of a log: the newest record of each key stays, with its offset.

There are two passes. The first reads the part written since the last cleaning and finds the newest offset of
each key. The second reads the whole log up to there and writes every segment again, without records that have
a newer one, without aborted records, and without tombstones and transaction markers (if no data of the
transaction is left) whose delete horizon has passed. A tombstone gets its delete horizon (now +
delete.retention.ms, as the base timestamp of its batch) when it is first read.

Runs in the worker process; reads segments and writes .cleaned files."""

import mmap
import secrets
import struct
import time

from crc32c import crc32c

from barnabas.kernels.compaction import ALL_FIT, MALFORMED, OffsetMap
from barnabas.kernels.compaction_walk import BROKEN, END, FULL, index_batches, skim_batches
from barnabas.log import names
from barnabas.log.compaction.job import CleanedGroup, CleaningJob, CleaningResult, SourceSegment
from barnabas.log.compaction.output import CleanedSegment
from barnabas.log.compaction.source import (
    DamagedSourceError,
    SegmentReader,
    Throttle,
    Transactions,
    TransactionWalk,
    check_crc,
)
from barnabas.log.disk import Disk
from barnabas.records.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    NO_TIMESTAMP,
    BatchHeader,
    read_header,
)
from barnabas.records.builder import records_payload, seal
from barnabas.records.compression import compress

ENTRY_BYTES = 24
MAP_BYTES_MIN = 1 << 20
# Later than any time with any delete.retention.ms; a timestamp minus this still fits in 64 bits.
HORIZON_MAX = 1 << 62
RELATIVE_OFFSET_MAX = 2**31 - 1
RECORD_GROWTH_BYTES = 10
NOTHING_KNOWN = -1
NOTHING_EXPIRES = -1


def clean(job: CleaningJob, disk: Disk, throttle: Throttle | None = None) -> CleaningResult:
    """Write the cleaned segments of a log. DamagedSourceError or KafkaError if the log cannot be cleaned."""
    started = time.monotonic()
    throttle = throttle or Throttle(job.bytes_per_second)
    reader = SegmentReader(disk, job.directory, throttle)
    transactions = Transactions.of(job, disk, reader)
    upper_offset = _decided_below(job, transactions)
    try:
        offsets, end_offset = _learn_offsets(job, reader, transactions, upper_offset)
        writer = _Writer(job, disk, offsets, end_offset - 1, TransactionWalk(transactions))
        groups = [
            written
            for group in _groups(job, disk, min(end_offset, upper_offset))
            if (written := writer.rewrite(reader, throttle, group)) is not None
        ]
    except struct.error as problem:
        raise DamagedSourceError(f"a batch has an impossible number: {problem}") from problem
    return CleaningResult(
        end_offset,
        tuple(groups),
        reader.bytes_read,
        writer.bytes_written,
        time.monotonic() - started,
    )


def _decided_below(job: CleaningJob, transactions: Transactions) -> int:
    """Segments from this offset on are not cleaned: the first has a transaction whose marker is missing."""
    undecided = transactions.undecided_from
    if undecided is None or undecided >= job.upper_offset:
        return job.upper_offset
    starts = [segment.base_offset for segment in job.segments if segment.base_offset <= undecided]
    return max(starts, default=job.first_dirty_offset)


def _new_map(job: CleaningJob) -> OffsetMap:
    dirty = sum(segment.size for segment in job.segments if segment.next_offset > job.first_dirty_offset)
    size = min(job.map_bytes, max(2 * dirty, MAP_BYTES_MIN)) // ENTRY_BYTES * ENTRY_BYTES
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # The map is read at random positions: with small pages address translation would take most of the
        # time.
        memory.madvise(mmap.MADV_HUGEPAGE)
    slots = size // ENTRY_BYTES
    limit = max(1, min(int(slots * job.map_load_factor), slots - 1))
    secret = (secrets.randbits(64), secrets.randbits(64))
    return OffsetMap(memoryview(memory).cast("Q"), secret, limit)


def _learn_offsets(
    job: CleaningJob, reader: SegmentReader, transactions: Transactions, upper_offset: int
) -> tuple[OffsetMap, int]:
    """The newest offset of each key in the dirty part, and where that part ends, or where the map was
    full."""
    learner = _Learner(_new_map(job), job.first_dirty_offset, transactions)
    for segment in job.segments:
        if segment.base_offset < upper_offset and segment.next_offset > job.first_dirty_offset:
            try:
                reader.walk(segment, learner.process)
            except _MapFull as full:
                return learner.offsets, full.offset
    return learner.offsets, max(upper_offset, job.first_dirty_offset)


class _MapFull(Exception):
    """The map has no room for another key; `offset` is the first offset that is not in it."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class _Learner:
    def __init__(self, offsets: OffsetMap, start_offset: int, transactions: Transactions) -> None:
        self.offsets = offsets
        self._start_offset = start_offset
        self._walk = TransactionWalk(transactions)

    def process(self, window: memoryview) -> int:
        position = 0
        while True:
            reason, position, offset = index_batches(
                self.offsets, window, position, self._start_offset, crc32c
            )
            if reason == END:
                return position
            if reason == FULL:
                raise _MapFull(offset)
            header = read_header(window, position)
            if reason == BROKEN:
                raise _broken(header)
            batch = window[position : position + header.size]
            check_crc(batch, header)
            self._learn(batch, header)
            position += header.size

    def _learn(self, batch: memoryview, header: BatchHeader) -> None:
        if header.is_control or self._walk.is_aborted(header) or header.last_offset < self._start_offset:
            return
        payload = records_payload(batch, header)
        result = self.offsets.learn(payload, header.count, header.base_offset, self._start_offset)
        if result == MALFORMED:
            raise _broken(header)
        if result != ALL_FIT:
            raise _MapFull(result)


def _broken(header: BatchHeader) -> DamagedSourceError:
    return DamagedSourceError(
        f"the batch at offset {header.base_offset} is malformed or does not match its checksum"
    )


def _groups(job: CleaningJob, disk: Disk, end_offset: int) -> list[list[SourceSegment]]:
    """Adjacent segments whose data and indexes fit in one segment. A segment with known damage is a group of
    its own."""
    groups: list[list[SourceSegment]] = []
    room: list[int] = []
    for segment in job.segments[:-1]:
        if segment.base_offset >= end_offset:
            break
        needs = _needs(job, disk, segment)
        joins = (
            groups
            and not segment.bad
            and not groups[-1][-1].bad
            and segment.next_offset - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX
            and all(need <= left for need, left in zip(needs, room, strict=True))
        )
        if joins:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            room = [job.segment_bytes, job.segment_index_bytes, job.segment_index_bytes]
        room = [left - need for need, left in zip(needs, room, strict=True)]
    return groups


def _needs(job: CleaningJob, disk: Disk, segment: SourceSegment) -> list[int]:
    needs = [segment.size]
    for suffix in (names.INDEX, names.TIME_INDEX):
        try:
            file = disk.open(names.segment_file(job.directory, segment.base_offset, suffix))
        except FileNotFoundError:
            needs.append(0)
        else:
            needs.append(disk.size(file.fd))
    return needs


class _Writer:
    """Rewrites groups of segments, in the order of the log."""

    def __init__(
        self, job: CleaningJob, disk: Disk, offsets: OffsetMap, latest_offset: int, walk: TransactionWalk
    ) -> None:
        self._job = job
        self._disk = disk
        self._offsets = offsets
        self._latest_offset = latest_offset
        self._walk = walk
        # Records in a damaged segment cannot be removed, so the newer records and tombstones of their keys
        # have to stay.
        damaged = any(segment.bad for segment in job.segments)
        self._expiry_ms = NOTHING_EXPIRES if damaged else job.now_ms
        self._kept_offsets = {one.last_offset for one in job.producers if one.last_offset >= 0}
        self._kept_markers = {(one.producer_id, one.epoch) for one in job.producers if one.last_offset < 0}
        self._target = memoryview(bytearray(0))
        self._scratch = memoryview(bytearray(0))
        self._last_head = b""
        self._rewrote = False
        self.bytes_written = 0

    def rewrite(
        self, reader: SegmentReader, throttle: Throttle, group: list[SourceSegment]
    ) -> CleanedGroup | None:
        """Write the group as one segment; None if nothing changed."""
        if group[0].bad:
            reader.walk(group[0], self._walk.skip)
            self._walk.indexed.clear()
            return None
        output = CleanedSegment(self._disk, self._job, group[0].base_offset)
        self._last_head, self._rewrote = b"", False
        for segment in group:
            before = output.size
            reader.walk(segment, lambda window: self._process(window, output))
            throttle.spend(output.size - before)
        self._keep_end(output)
        aborted, self._walk.indexed = self._walk.indexed, []
        if len(group) == 1 and not self._rewrote and output.size == group[0].size:
            output.remove()
            return None
        output.finish(aborted)
        self.bytes_written += output.size
        return CleanedGroup(
            tuple(segment.base_offset for segment in group),
            output.size,
            output.first_timestamp,
            output.max_timestamp,
            output.max_timestamp_offset,
        )

    def _keep_end(self, output: CleanedSegment) -> None:
        """Keep the last batch, at least without its records: recovery and the producer state need to know the
        last offset and sequence."""
        if self._last_head:
            header = read_header(self._last_head)
            if header.next_offset > output.next_offset:
                self._append(output, _emptied(header))

    def _process(self, window: memoryview, output: CleanedSegment) -> int:
        if len(self._target) < len(window):
            self._target = memoryview(bytearray(len(window)))
        position, filled = 0, 0
        while True:
            reason, position, filled, last = skim_batches(
                self._offsets,
                window,
                self._target,
                position,
                filled,
                self._latest_offset,
                self._expiry_ms,
                self._kept_offsets,
                crc32c,
            )
            if last >= 0:
                self._last_head = bytes(window[last : last + HEADER_SIZE])
            if reason == END:
                output.append(self._target[:filled])
                return position
            header = read_header(window, position)
            if reason == BROKEN:
                raise _broken(header)
            output.append(self._target[:filled])
            filled = 0
            batch = window[position : position + header.size]
            check_crc(batch, header)
            self._append(output, self._remaining(batch, header))
            self._last_head = bytes(batch[:HEADER_SIZE])
            position += header.size

    def _append(self, output: CleanedSegment, batch: bytes | bytearray | memoryview) -> None:
        if batch:
            output.append(batch)
            self._walk.wrote(memoryview(batch))

    def _remaining(self, batch: memoryview, header: BatchHeader) -> bytes | bytearray | memoryview:
        """The batch as it is, or with fewer records, or without records; no bytes if it is removed."""
        if header.is_control:
            has_no_data = self._walk.has_no_data(batch, header)
            removed = header.count == 0 or (has_no_data and self._is_expired(header))
            kept = None if removed else self._filtered(batch, header, NOTHING_KNOWN, has_no_data)
        else:
            removed = self._walk.is_aborted(header) or header.count == 0
            kept = None if removed else self._filtered(batch, header, self._latest_offset, False)
        if kept is not None:
            return kept
        if header.producer_id < 0 or header.last_offset not in self._kept_offsets:
            return b""
        return batch if header.count == 0 else _emptied(header)

    def _is_expired(self, marker: BatchHeader) -> bool:
        """Whether the delete horizon has passed. A marker that is all that is left of a producer never
        expires: the epoch of the producer is read from its record."""
        if (marker.producer_id, marker.producer_epoch) in self._kept_markers:
            return False
        return marker.has_delete_horizon and marker.base_timestamp <= self._expiry_ms

    def _filtered(
        self, batch: memoryview, header: BatchHeader, latest_offset: int, marker_without_data: bool
    ) -> bytes | bytearray | memoryview | None:
        payload = records_payload(batch, header)
        keep_tombstones = not header.has_delete_horizon or self._expiry_ms < header.base_timestamp
        kept, size, tombstones, highest = self._run_filter(
            payload, header, latest_offset, keep_tombstones, shift=0
        )
        if kept == 0:
            return None
        attributes, base_timestamp = header.attributes, header.base_timestamp
        if (tombstones or marker_without_data) and not header.has_delete_horizon:
            base_timestamp = min(self._job.now_ms + self._job.delete_retention_ms, HORIZON_MAX)
            attributes |= DELETE_HORIZON_FLAG
            kept, size, tombstones, highest = self._run_filter(
                payload, header, latest_offset, keep_tombstones, shift=header.base_timestamp - base_timestamp
            )
        elif kept == header.count:
            return batch
        self._rewrote = True
        max_timestamp = header.max_timestamp if header.is_log_append_time else base_timestamp + highest
        return seal(
            header._replace(
                attributes=attributes, base_timestamp=base_timestamp, max_timestamp=max_timestamp, count=kept
            ),
            compress(header.compression, self._scratch[:size]),
        )

    def _run_filter(
        self,
        payload: memoryview,
        header: BatchHeader,
        latest_offset: int,
        keep_tombstones: bool,
        *,
        shift: int,
    ) -> tuple[int, int, int, int]:
        if not 0 <= header.count <= len(payload):
            raise _broken(header)
        room = len(payload) + RECORD_GROWTH_BYTES * header.count
        if len(self._scratch) < room:
            self._scratch = memoryview(bytearray(room))
        kept, size, tombstones, highest = self._offsets.filter(
            payload, header.count, header.base_offset, latest_offset, keep_tombstones, shift, self._scratch
        )
        if kept == MALFORMED:
            raise _broken(header)
        return kept, size, tombstones, highest


def _emptied(header: BatchHeader) -> bytearray:
    """The batch without its records: its offsets and its producer's last sequence stay."""
    attributes = header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_FLAG)
    return seal(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, count=0), b"")
