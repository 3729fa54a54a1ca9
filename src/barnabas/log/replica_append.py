"""Appending as a follower: the bytes of a Fetch answer become a part of the log, as the leader wrote them.

All batches are checked before the first is written. Those before the first bad one are appended; if the first
is bad, that is an error, and the log is as it was. Each segment gets its part in one write, and epochs,
producers and transactions follow. Segments roll at the same batches as on the leader, so both have the same
files."""

from crc32c import crc32c

from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.log_end import AppendResult
from barnabas.kernels.replica_batches import (
    EPOCH_AHEAD,
    EPOCH_BACK,
    GOOD,
    OFFSET_REPEATED,
    WRONG_CHECKSUM,
    check_batches,
)
from barnabas.log.errors import UnexpectedOffsetError
from barnabas.log.segment import Segment
from barnabas.log.state import LogState
from barnabas.log.truncation import truncate_fully_and_start_at
from barnabas.records.batch import BatchHeader, read_header
from barnabas.records.builder import Marker, read_marker

NO_TIMESTAMP = -1


class _ProducerBatch:
    """A batch with a producer id, at `position` in the data."""

    __slots__ = ("header", "marker", "position")

    def __init__(self, data: memoryview, position: int) -> None:
        self.position = position
        self.header: BatchHeader = read_header(data, position)
        self.marker: Marker | None = None
        if self.header.is_control and self.header.count:
            self.marker = read_marker(data[position : position + self.header.size])


def append_as_follower(log: LogState, data: memoryview, leader_epoch: int) -> AppendResult:
    """See Log.append_as_follower."""
    if log.offline:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {log.partition} is offline")
    fault, end, first, last, epochs, producer_positions = check_batches(
        data, log.log_end_offset, log.leader_epochs.latest, leader_epoch, crc32c
    )
    if end == 0 and fault not in (GOOD, EPOCH_AHEAD):
        raise _refusal(log, data, fault, end)
    producers = [_ProducerBatch(data, position) for position in producer_positions]
    start = taken = 0
    try:
        while start < end:
            segment = _segment_for(log, read_header(data, start))
            start, last_offset = segment.append_run(data, start, end)
            log.log_end_offset = last_offset + 1
            while epochs and epochs[0][1] <= last_offset:
                log.leader_epochs.assign(*epochs.pop(0))
            while taken < len(producers) and producers[taken].position < start:
                _record_producer(log, segment, producers[taken])
                taken += 1
    except OSError as problem:
        raise log.storage_error(problem) from problem
    if last >= log.flush_at:
        log.flush()
    return AppendResult(first, last, NO_TIMESTAMP, log.log_start_offset, False)


def append_from_start(log: LogState, data: memoryview, leader_epoch: int) -> None:
    """The same for batches that begin where the leader's log begins: its log start may be inside a batch,
    which is sent whole. An empty log then begins at that batch."""
    try:
        append_as_follower(log, data, leader_epoch)
    except UnexpectedOffsetError as error:
        is_empty = log.log_start_offset == log.log_end_offset
        if not (is_empty and error.first_offset < log.log_end_offset <= error.last_offset):
            raise
        truncate_fully_and_start_at(log, error.first_offset)
        append_as_follower(log, data, leader_epoch)


def _segment_for(log: LogState, first: BatchHeader) -> Segment:
    """The active segment, or a new one if the batch does not belong there.

    Unlike a leader, a follower takes a batch that is larger than segment.bytes: the setting may have been
    lowered after the leader took it."""
    segment = log.active
    if segment.roll_due(first.size, first.last_offset, first.max_timestamp, log.clock.now_ms()):
        return log.roll(first.base_offset)
    return segment


def _record_producer(log: LogState, segment: Segment, batch: _ProducerBatch) -> None:
    header = batch.header
    if header.is_control:
        log.record_marker(header, batch.marker, header.base_offset, segment)
    else:
        log.producers.record_batch(header, header.base_offset)


def _refusal(log: LogState, data: memoryview, fault: int, position: int) -> Exception:
    header = read_header(data, position)
    if fault == OFFSET_REPEATED:
        return UnexpectedOffsetError(header.base_offset, header.last_offset, log.log_end_offset)
    if fault == WRONG_CHECKSUM:
        problem = f"the batch at offset {header.base_offset} has a wrong checksum"
    elif fault == EPOCH_BACK:
        problem = f"the batch at offset {header.base_offset} has the older leader epoch {header.leader_epoch}"
    else:
        problem = f"the bytes at position {position} are not a record batch"
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{log.partition}: from the leader: {problem}")
