"""Reading a log: which bytes of which file answer a fetch. Nothing is copied; a slice names a file range.

A slice keeps its file open, so it stays readable when retention deletes the segment under it. It counts as a
reader of the file until it is released."""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.log.disk import FileHandle, Readers
from barnabas.log.errors import DamagedIndexError
from barnabas.log.rebuild import rebuild_indexes, verify
from barnabas.log.segment import Segment
from barnabas.log.state import LogState


class LogSlice:
    """`size` bytes from `position`; size 0 when there is nothing to read. The first batch holds the offset
    asked for; it is cut off (`first_batch_incomplete`) only if the caller did not insist on one.

    Call release() when the bytes are sent or will not be needed. A slice that is dropped releases itself."""

    __slots__ = ("_readers", "base_offset", "file", "first_batch_incomplete", "position", "size")

    def __init__(self, file: FileHandle | None, readers: Readers, position: int, size: int) -> None:
        readers.count += 1
        self._readers: Readers | None = readers
        self.file = file
        self.position = position
        self.size = size
        self.first_batch_incomplete = False
        self.base_offset = 0

    def release(self) -> None:
        """Stop being a reader of the file, which is closed if nobody else needs it; may be called twice."""
        readers, self._readers = self._readers, None
        if readers is not None:
            readers.count -= 1
            self.file = None

    def __del__(self) -> None:
        self.release()


EMPTY = LogSlice(None, Readers(), 0, 0)


def read(log: LogState, offset: int, bytes_max: int, upper_offset: int, at_least_one: bool) -> LogSlice:
    """See Log.read."""
    end = log.log_end_offset
    if offset < log.log_start_offset or offset > end or log.offline:
        raise _refusal(log, offset)
    upper = upper_offset if upper_offset < end else end
    if offset >= upper:
        return EMPTY
    if log.damaged:
        upper = _below_damage(log, offset, upper)
    try:
        return _slice(log, offset, upper, bytes_max, at_least_one)
    except KafkaError:
        if not _find_damage(log, offset):
            raise
        return read(log, offset, bytes_max, upper_offset, at_least_one)
    except OSError as problem:
        raise log.storage_error(problem) from problem


def _find_damage(log: LogState, offset: int) -> bool:
    """A read met bytes that are no batch: check the whole segment, so that only the damaged ones are lost.

    True if damage was found that was not known before."""
    try:
        found = verify(log.segments[log.segment_for(offset)])
        if found:
            log.save_corrupt_ranges()
    except OSError as problem:
        raise log.storage_error(problem) from problem
    return found


def _slice(log: LogState, offset: int, upper: int, bytes_max: int, at_least_one: bool) -> LogSlice:
    place = log.segment_for(offset)
    while place < len(log.segments):
        segment = log.segments[place]
        start = _start_of(log, segment, offset)
        if start is not None:
            break
        # Compaction can leave a segment that ends before the next one begins.
        place += 1
    else:
        return EMPTY
    position = start[0]
    available = _end_position(log, segment, upper) - position
    if available <= 0:
        return EMPTY
    size, incomplete = available, False
    if available > bytes_max:
        first_size = start[1] or _located(log, segment, offset)[1]
        size = max(bytes_max, first_size) if at_least_one else bytes_max
        size = min(size, available)
        incomplete = size < first_size
    file = segment.file()
    if position < segment.trusted_from:
        segment.check_order(position, position + size)
    piece = LogSlice(file, segment.readers, position, size)
    piece.first_batch_incomplete = incomplete
    piece.base_offset = segment.base_offset
    return piece


def _start_of(log: LogState, segment: Segment, offset: int) -> tuple[int, int] | None:
    """(position, size or 0 if not known) of the batch that holds `offset` or is the next after it."""
    hint = segment.hint
    if hint[0] == offset and hint[1] < segment.size:
        return hint[1], 0
    found = locate(log, segment, offset)
    return None if found is None else found[:2]


def _end_position(log: LogState, segment: Segment, upper: int) -> int:
    """Where the slice has to end so that every offset in it is below `upper`; remembered for the next
    fetch."""
    if upper >= segment.next_offset:
        segment.hint = (segment.next_offset, segment.size)
        return segment.size
    if segment.hint[0] == upper:
        return segment.hint[1]
    found = locate(log, segment, upper)
    position = segment.size if found is None else found[0]
    segment.hint = (upper, position)
    return position


def locate(log: LogState, segment: Segment, offset: int) -> tuple[int, int, int] | None:
    """Segment.locate, which rebuilds an index that turns out to be wrong."""
    try:
        return segment.locate(offset)
    except DamagedIndexError:
        rebuild_indexes(segment)
        log.save_corrupt_ranges()
        return segment.locate(offset)


def _located(log: LogState, segment: Segment, offset: int) -> tuple[int, int, int]:
    found = locate(log, segment, offset)
    if found is None:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{log.partition}: offset {offset} is not where it was")
    return found


def _below_damage(log: LogState, offset: int, upper: int) -> int:
    """The log has bad bytes: refuse offsets that were in them, and end before them otherwise."""
    for corrupt in log.corrupt_ranges:
        if corrupt.first_offset <= offset < corrupt.next_offset:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{log.partition}: offsets {corrupt.first_offset} to {corrupt.next_offset - 1} are damaged",
            )
        if offset < corrupt.first_offset < upper:
            upper = corrupt.first_offset
    return upper


def _refusal(log: LogState, offset: int) -> KafkaError:
    if log.offline:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {log.partition} is offline")
    return KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"offset {offset} of {log.partition} is not in {log.log_start_offset}..{log.log_end_offset}",
    )


def upper_bound_of(log: LogState, piece: LogSlice) -> int:
    """See Log.upper_bound_of."""
    place = log.segment_for(piece.base_offset)
    segment = log.segments[place]
    end = piece.position + piece.size
    if piece.size == 0 or end >= segment.size:
        return segment.next_offset
    bound = segment.offset_above(end)
    return segment.next_offset if bound is None else bound
