"""Finding the record with a timestamp, and the highest timestamp of a segment.

The time index is a hint like the offset index: an entry is used only if its batch has that timestamp."""

from typing import NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.log.errors import DamagedIndexError
from barnabas.log.reading import locate
from barnabas.log.rebuild import rebuild_indexes
from barnabas.log.segment import Segment
from barnabas.log.state import LogState
from barnabas.records.batch import BatchHeader
from barnabas.records.builder import first_at_or_after, read_records


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def offset_for_timestamp(log: LogState, timestamp: int) -> TimestampOffset | None:
    """See Log.offset_for_timestamp."""
    try:
        for segment in log.segments:
            if largest_timestamp(log, segment) >= timestamp:
                record = _search(log, segment, timestamp)
                if record is not None:
                    return record
    except OSError as problem:
        raise log.storage_error(problem) from problem
    return None


def max_timestamp_offset(log: LogState) -> TimestampOffset | None:
    """See Log.max_timestamp_offset."""
    try:
        if log.log_start_offset == log.log_end_offset:
            return None
        newest = max(log.segments, key=lambda segment: largest_timestamp(log, segment))
        if newest.max_timestamp < 0:
            return None
        batch = locate(log, newest, newest.max_timestamp_offset)
        header = newest.window().header(batch[0]) if batch else None
        if batch is None or header is None:
            return None
        return _record_at_or_after(log, newest, batch[0], header, newest.max_timestamp)
    except OSError as problem:
        raise log.storage_error(problem) from problem


def largest_timestamp(log: LogState, segment: Segment) -> int:
    """The highest timestamp in the segment, or -1 if it has none."""
    if not segment.timestamps_known:
        segment.file()
        try:
            _learn_timestamps(log, segment)
        except DamagedIndexError:
            rebuild_indexes(segment)
            log.save_corrupt_ranges()
    return segment.max_timestamp


def _learn_timestamps(log: LogState, segment: Segment) -> None:
    """Start from the last time index entry, if the log confirms it, and read the headers after it."""
    start, highest, highest_offset = segment.times_from, -1, segment.base_offset
    last = segment.time_index.last()
    if last is None and segment.size:
        raise DamagedIndexError(f"{segment} has no time index")
    if last is not None and segment.max_timestamp < 0:
        start = _entry_position(log, segment, last)
    for _, header in segment.headers(start):
        if header.max_timestamp > highest:
            highest, highest_offset = header.max_timestamp, header.last_offset
    first = segment.window().header(0) if segment.size else None
    segment.adopt_timestamps(first.max_timestamp if first else None, highest, highest_offset)


def _entry_position(log: LogState, segment: Segment, entry: tuple[int, int]) -> int:
    """The position of the batch of a time index entry; DamagedIndexError if its timestamp is another one."""
    batch = locate(log, segment, segment.base_offset + entry[1])
    header = segment.window().header(batch[0]) if batch else None
    if batch is None or header is None or header.max_timestamp != entry[0]:
        raise DamagedIndexError(f"the time index of {segment} points at a batch with another timestamp")
    return batch[0]


def _search(log: LogState, segment: Segment, timestamp: int) -> TimestampOffset | None:
    start = 0
    # An entry for exactly this timestamp is not used: a damaged one could point at a later batch that has it.
    entry = segment.time_index.floor(timestamp - 1)
    if entry is not None:
        try:
            start = _entry_position(log, segment, entry)
        except DamagedIndexError:
            rebuild_indexes(segment)
            log.save_corrupt_ranges()
    for position, header in segment.headers(start):
        if header.max_timestamp >= timestamp:
            record = _record_at_or_after(log, segment, position, header, timestamp)
            if record is not None:
                return record
    return None


def _record_at_or_after(
    log: LogState, segment: Segment, position: int, header: BatchHeader, timestamp: int
) -> TimestampOffset | None:
    if header.last_offset < log.log_start_offset:
        return None
    batch = segment.read_batch(position, header.size)
    if len(batch) < header.size:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"{log.partition}: the batch at offset {header.base_offset} is incomplete",
        )
    if header.base_offset >= log.log_start_offset:
        record = first_at_or_after(batch, timestamp)
        return (
            None if record is None else TimestampOffset(record.timestamp, record.offset, header.leader_epoch)
        )
    # The log start is inside this batch: its earlier records are deleted and must not be returned.
    for candidate in read_records(batch):
        if candidate.timestamp >= timestamp and candidate.offset >= log.log_start_offset:
            return TimestampOffset(candidate.timestamp, candidate.offset, header.leader_epoch)
    return None
