"""Reading a log: which bytes of which file answer a fetch. Nothing is copied; a slice is a range of a file.

A slice keeps its file open, so it can still be read after retention deleted the segment. It counts as a
reader of the file until it is released."""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.log.disk import FileHandle, Readers
from barnabas.log.errors import DamagedIndexError
from barnabas.log.rebuild import rebuild_indexes, verify
from barnabas.log.segment import Segment
from barnabas.log.state import LogState


class LogSlice:
    """`size` bytes of a file from `position`; size 0 if there is nothing to read. The first batch holds the
    requested offset.

    Call release() when the bytes are sent or will not be needed. A slice that is dropped releases itself."""

    __slots__ = ("_readers", "base_offset", "file", "position", "size")

    def __init__(
        self, file: FileHandle | None, readers: Readers, position: int, size: int, base_offset: int
    ) -> None:
        readers.count += 1
        self._readers: Readers | None = readers
        self.file = file
        self.position = position
        self.size = size
        # The base offset of the segment.
        self.base_offset = base_offset

    def release(self) -> None:
        """Stop being a reader of the file, which is closed if nobody else needs it; may be called twice."""
        readers, self._readers = self._readers, None
        if readers is not None:
            readers.count -= 1
            self.file = None

    def __del__(self) -> None:
        self.release()


EMPTY = LogSlice(None, Readers(), 0, 0, 0)


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
    """A read met bytes that are not a batch: check the whole segment, so that only the damaged batches are
    refused.

    True if there is damage that was not known before."""
    try:
        is_new = verify(log.segments[log.segment_for(offset)])
        if is_new:
            log.save_corrupt_ranges()
    except OSError as problem:
        raise log.storage_error(problem) from problem
    return is_new


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
    size = available
    if available > bytes_max:
        size = bytes_max
        if at_least_one:
            first_size = start[1] or _located(log, segment, offset)[1]
            size = min(max(bytes_max, first_size), available)
    file = segment.file()
    if position < segment.trusted_from:
        _check_order(log, segment, position, position + size)
    return LogSlice(file, segment.readers, position, size, segment.base_offset)


def _start_of(log: LogState, segment: Segment, offset: int) -> tuple[int, int] | None:
    """(position, size or 0 if not known) of the batch that holds `offset`, or of the first batch after it."""
    for known_offset, position in segment.hints:
        if known_offset == offset and position < segment.size:
            return position, 0
    batch = locate(log, segment, offset)
    return None if batch is None else batch[:2]


def _end_position(log: LogState, segment: Segment, upper: int) -> int:
    """Where the slice has to end so that every offset in it is below `upper`; the segment remembers it for
    the next fetch."""
    if upper >= segment.next_offset:
        segment.remember(segment.next_offset, segment.size)
        return segment.size
    for known_offset, position in segment.hints:
        if known_offset == upper:
            return position
    batch = locate(log, segment, upper)
    position = segment.size if batch is None else batch[0]
    segment.remember(upper, position)
    return position


def _check_order(log: LogState, segment: Segment, start: int, end: int) -> None:
    try:
        segment.check_order(start, end)
    except DamagedIndexError:
        _rebuild(log, segment)
        segment.check_order(start, end)


def locate(log: LogState, segment: Segment, offset: int) -> tuple[int, int, int] | None:
    """Like Segment.locate, but rebuilds an index that turns out to be wrong."""
    try:
        return segment.locate(offset)
    except DamagedIndexError:
        _rebuild(log, segment)
        return segment.locate(offset)


def _rebuild(log: LogState, segment: Segment) -> None:
    rebuild_indexes(segment)
    log.save_corrupt_ranges()


def _located(log: LogState, segment: Segment, offset: int) -> tuple[int, int, int]:
    batch = locate(log, segment, offset)
    if batch is None:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"{log.partition}: the batch of offset {offset} is missing"
        )
    return batch


def _below_damage(log: LogState, offset: int, upper: int) -> int:
    """The upper offset of a read in a damaged log: before the next damaged range. Damaged offsets are
    refused."""
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
