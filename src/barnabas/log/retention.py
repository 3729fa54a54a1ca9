"""Removing the oldest segments of a log: by age, by size, and below the log start offset.

Nothing at or above the high watermark is ever removed. A follower removes only what is below the log start of
its leader, which alone decides by age and size. A log keeps at least one segment: if all are due, a
new one is created first."""

from collections.abc import Callable

from barnabas.errors import ErrorCode, KafkaError
from barnabas.log import names
from barnabas.log.segment import Segment
from barnabas.log.state import LogState
from barnabas.log.timestamps import largest_timestamp


def apply_retention(log: LogState, now_ms: int) -> int:
    """See Log.apply_retention."""
    if log.offline:
        return 0
    try:
        deleted = _delete_while(log, lambda segment: segment.next_offset <= log.log_start_offset)
        if log.config.cleanup_delete and log.applies_retention:
            deleted += _delete_by_size(log) + _delete_by_age(log, now_ms)
    except OSError as problem:
        raise log.storage_error(problem) from problem
    return deleted


def _delete_by_size(log: LogState) -> int:
    limit = log.config.retention_bytes
    if limit < 0:
        return 0
    excess = log.size - limit

    def is_excess(segment: Segment) -> bool:
        nonlocal excess
        excess -= segment.size
        return excess >= 0

    return _delete_while(log, is_excess)


def _delete_by_age(log: LogState, now_ms: int) -> int:
    limit = log.config.retention_ms
    if limit < 0:
        return 0
    return _delete_while(log, lambda segment: now_ms - largest_timestamp(log, segment) > limit)


def _delete_while(log: LogState, due: Callable[[Segment], bool]) -> int:
    """Delete segments, beginning with the oldest, as long as they are due. If the active one is due too, it
    is rolled first."""
    removed: list[Segment] = []
    for segment in log.segments:
        empty_end = segment.active and segment.size == 0
        if empty_end or segment.next_offset > log.high_watermark or not due(segment):
            break
        removed.append(segment)
    if not removed:
        return 0
    if removed[-1].active:
        if removed[-1].next_offset <= removed[-1].base_offset:
            removed.pop()
        else:
            log.roll()
    if removed:
        remove_oldest(log, removed)
    return len(removed)


def remove_oldest(log: LogState, removed: list[Segment]) -> None:
    """Remove the first segments from the log; the log start offset moves up first."""
    advance_log_start(log, removed[-1].next_offset)
    log.set_segments(log.segments[len(removed) :])
    for segment in removed:
        discard(log, segment)
    if any(segment.bad for segment in removed):
        log.save_corrupt_ranges()


def discard(log: LogState, segment: Segment) -> None:
    """Rename the files and the snapshot of a segment that is no longer in the log; they are deleted after
    file.delete.delay.ms."""
    segment.release()
    delay_ms = log.config.file_delete_delay_ms
    for suffix in names.SEGMENT_SUFFIXES:
        log.trash.add_file(segment.path(suffix), delay_ms)
    if segment.base_offset in log.producers.snapshots:
        log.producers.snapshots.remove(segment.base_offset)
        log.trash.add_file(log.producers.snapshot_path(segment.base_offset), delay_ms)


def advance_log_start(log: LogState, offset: int) -> bool:
    """See Log.delete_records_before."""
    if offset > log.high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{log.partition}: offset {offset} is above the high watermark {log.high_watermark}",
        )
    if offset <= log.log_start_offset:
        return False
    log.log_start_offset = offset
    try:
        log.leader_epochs.truncate_from_start(offset)
    except OSError as problem:
        raise log.storage_error(problem) from problem
    log.producers.forget_replicated(offset)
    return True
