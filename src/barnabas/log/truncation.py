"""Truncating a log: a follower removes records at the end of its log that its leader never had."""

from barnabas.log.reading import locate
from barnabas.log.rebuild import make_walkable
from barnabas.log.retention import discard
from barnabas.log.state import LogState


def truncate_to(log: LogState, offset: int) -> bool:
    """See Log.truncate_to. Cuts before the batch that holds `offset`, so the log may end below it."""
    if offset < 0:
        raise ValueError(f"a log cannot be truncated to offset {offset}")
    try:
        if offset >= log.log_end_offset:
            # An epoch that begins at the end has no records and may contradict the new leader's epoch.
            log.leader_epochs.truncate_from_end(log.log_end_offset)
            return False
        if offset < log.bases[0]:
            truncate_fully_and_start_at(log, offset)
            return True
        _truncate(log, offset)
    except OSError as problem:
        raise log.storage_error(problem) from problem
    return True


def _truncate(log: LogState, offset: int) -> None:
    place = log.segment_for(offset)
    removed = log.segments[place + 1 :]
    segment = log.segments[place]
    batch = locate(log, segment, offset)
    position = segment.size if batch is None else batch[0]
    end = offset if batch is None else min(offset, _base_offset_at(log, place, position))
    for later in reversed(removed):
        discard(log, later)
    if not segment.active:
        segment.activate()
    segment.truncate(position, end)
    log.set_segments(log.segments[: place + 1])
    _end_at(log, end)


def _base_offset_at(log: LogState, place: int, position: int) -> int:
    header = log.segments[place].window().header(position)
    return log.log_end_offset if header is None else header.base_offset


def _end_at(log: LogState, end: int) -> None:
    log.log_end_offset = end
    log.log_start_offset = min(log.log_start_offset, end)
    log.recovery_point = min(log.recovery_point, end)
    log.high_watermark = min(log.high_watermark, end)
    log.leader_epochs.truncate_from_end(end)
    rebuild_producers(log, end)
    log.save_corrupt_ranges()
    log.update_flush_limit()
    log.on_truncation(log, end)


def rebuild_producers(log: LogState, end: int) -> None:
    """Restore the producer state as it was at `end`."""
    producers = log.producers
    for snapshot in [offset for offset in producers.snapshots if offset > end]:
        producers.delete_snapshot(snapshot)
    start = producers.load_newest(log.log_start_offset, end)
    for segment in log.segments[log.segment_for(start) :]:
        make_walkable(segment)
        producers.replay(segment, start, end)
    producers.end_offset = end
    producers.forget_replicated(log.high_watermark)


def truncate_fully_and_start_at(log: LogState, offset: int) -> None:
    """Remove everything: the log is empty, and its next offset is `offset`."""
    try:
        for segment in reversed(log.segments):
            discard(log, segment)
        for snapshot in list(log.producers.snapshots):
            log.producers.delete_snapshot(snapshot)
        log.set_segments([])
        log.add_segment(log.new_segment(offset))
        log.leader_epochs.clear()
    except OSError as problem:
        raise log.storage_error(problem, fatal=True) from problem
    log.producers.load({})
    log.producers.end_offset = offset
    log.log_start_offset = log.log_end_offset = log.high_watermark = offset
    log.recovery_point = min(log.recovery_point, offset)
    log.save_corrupt_ranges()
    log.update_flush_limit()
    log.on_truncation(log, offset)
