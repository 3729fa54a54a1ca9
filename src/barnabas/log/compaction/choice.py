"""Which part of a log can be compacted, and how urgent it is. Reads a log and changes nothing."""

from typing import NamedTuple

from barnabas.log.compaction.job import LastOfProducer, SourceSegment
from barnabas.log.log import Log
from barnabas.log.segment import Segment
from barnabas.log.timestamps import largest_timestamp


class Candidate(NamedTuple):
    """Segments below `upper_offset` can be cleaned. From `first_dirty_offset` on they were never cleaned."""

    log: Log
    first_dirty_offset: int
    upper_offset: int
    dirty_ratio: float
    overdue: bool

    @property
    def is_due(self) -> bool:
        return self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio or (
            self.overdue and self.dirty_ratio > 0
        )


def examine(log: Log, first_dirty_offset: int, now_ms: int) -> Candidate:
    """How urgent it is to clean a log. May read the first bytes or the time index of segments if the topic
    has a compaction lag."""
    upper_offset = _first_uncleanable(log, first_dirty_offset, now_ms)
    clean = dirty = 0
    for segment in log.segments:
        if segment.next_offset <= first_dirty_offset:
            clean += segment.size
        elif segment.base_offset < upper_offset:
            dirty += segment.size
    ratio = dirty / (clean + dirty) if dirty else 0.0
    return Candidate(
        log, first_dirty_offset, upper_offset, ratio, _is_overdue(log, first_dirty_offset, now_ms)
    )


def _first_uncleanable(log: Log, first_dirty_offset: int, now_ms: int) -> int:
    """The start of the first segment that is active, has records that are not replicated or belong to open
    transactions, or is too young."""
    bound = min(log.last_stable_offset, log.active.base_offset)
    upper_offset = log.bases[log.segment_for(bound)]
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in _dirty_segments(log, first_dirty_offset):
            if segment.base_offset >= upper_offset:
                break
            if largest_timestamp(log, segment) > now_ms - lag_ms:
                return segment.base_offset
    return upper_offset


def _is_overdue(log: Log, first_dirty_offset: int, now_ms: int) -> bool:
    limit = now_ms - log.config.max_compaction_lag_ms
    if limit <= 0:
        return False
    return any(0 < _first_timestamp(segment) < limit for segment in _dirty_segments(log, first_dirty_offset))


def _dirty_segments(log: Log, first_dirty_offset: int) -> list[Segment]:
    return [segment for segment in log.segments[:-1] if segment.next_offset > first_dirty_offset]


def _first_timestamp(segment: Segment) -> int:
    if segment.first_timestamp is not None:
        return segment.first_timestamp
    header = segment.window().header(0) if segment.size else None
    return -1 if header is None else header.max_timestamp


def source_segments(log: Log) -> tuple[SourceSegment, ...]:
    return tuple(
        SourceSegment(
            segment.base_offset,
            segment.next_offset,
            segment.size,
            tuple((corrupt.start, corrupt.end) for corrupt in segment.bad),
        )
        for segment in log.segments
    )


def last_of_producers(log: Log, upper_offset: int) -> tuple[LastOfProducer, ...]:
    """The batches below `upper_offset` from which the state of each producer is rebuilt after a crash."""
    last_batches = [
        LastOfProducer(entry.producer_id, entry.batches[-1].last_offset if entry.batches else -1, entry.epoch)
        for entry in log.producers.entries.values()
    ]
    return tuple(last for last in last_batches if last.last_offset < upper_offset)
