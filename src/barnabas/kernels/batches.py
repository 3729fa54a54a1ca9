"""Walks over record batches (magic 2) and the records in them: bytes and ints, no object made per record.

Every read is checked against the buffer's end, so hostile bytes give an error number, never a wild read.
Errors of RecordWalk: 1 record length, 2 timestamp varint, 3 offset delta, 4 key length, 5 value length,
6 header count, 7 header, 8 bytes left in a record, 9 bytes left after the last record, 10 timestamp beyond
64 bits, 11 no key though one is required, 12 timestamp out of range. 11 and 12 are a record's own fault: the
walk can go on after it.

The fields of the C classes are declared in batches.pxd, so that other kernels reach them with C's speed."""

import cython
from crc32c import crc32c

LONG_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
TRANSACTIONAL_FLAG = cython.declare(cython.int, 0x10)
# Position of the first byte that the CRC of a batch covers.
CRC_START = cython.declare(cython.int, 21)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _varint(
    buffer: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    bits: cython.int,
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A zigzag varint of at most `bits` bits: (value, position after it), the position -1 where malformed."""
    byte: cython.ulonglong
    raw: cython.ulonglong = 0
    shift: cython.int = 0
    if position < end and buffer[position] < 0x80:  # nearly all of them are one byte long
        byte = buffer[position]
        return cython.cast(cython.longlong, byte >> 1) ^ -cython.cast(cython.longlong, byte & 1), position + 1
    while position < end and shift < bits:
        byte = buffer[position]
        position += 1
        if shift + 7 > bits and (byte >> (bits - shift)) != 0:
            break
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw & 1:
                return -cython.cast(cython.longlong, raw >> 1) - 1, position
            return cython.cast(cython.longlong, raw >> 1), position
        shift += 7
    return 0, -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _skip_bytes(
    buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """Step over a length, -1 for null, and so many bytes: (length, position after), -1 where malformed."""
    length: cython.longlong
    length, position = _varint(buffer, position, end, 32)
    if position < 0 or length < -1 or length > end - position:
        return 0, -1
    if length > 0:
        position += cython.cast(cython.Py_ssize_t, length)
    return length, position


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _skip_headers(
    buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.int:
    """Step over a record's headers, which must end where the record does; gives the error."""
    count: cython.longlong
    length: cython.longlong
    _: cython.longlong
    count, position = _varint(buffer, position, end, 32)
    if position < 0 or count < 0 or count > (end - position) // 2:
        return 6
    for _ in range(count):
        length, position = _skip_bytes(buffer, position, end)
        if position < 0 or length < 0:
            return 7
        length, position = _skip_bytes(buffer, position, end)
        if position < 0:
            return 7
    return 0 if position == end else 8


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _check_body(
    buffer: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    index: cython.Py_ssize_t,
) -> tuple[cython.int, cython.longlong, cython.longlong]:
    """Check a record's body, which fills `position` to `end`: (error, timestamp delta, key length)."""
    timestamp_delta: cython.longlong
    length: cython.longlong
    key_length: cython.longlong
    timestamp_delta, position = _varint(buffer, position + 1, end, 64)
    if position < 0:
        return 2, 0, 0
    length, position = _varint(buffer, position, end, 32)
    if position < 0 or length != index:
        return 3, 0, 0
    key_length, position = _skip_bytes(buffer, position, end)
    if position < 0:
        return 4, 0, 0
    length, position = _skip_bytes(buffer, position, end)
    if position < 0:
        return 5, 0, 0
    return _skip_headers(buffer, position, end), timestamp_delta, key_length


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _overflows(left: cython.longlong, right: cython.longlong) -> cython.bint:
    """Whether the sum may be beyond 64 bits, where C would wrap; a few outermost values are given up."""
    half: cython.longlong = (left >> 1) + (right >> 1)
    limit: cython.longlong = (cython.cast(cython.longlong, 1) << 62) - 1
    return half >= limit or half < -limit


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _short(
    buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A varint of one or two bytes, its zigzag still in it: (raw value, position after it), -1 for a longer
    one. The caller has checked that two bytes are there."""
    raw: cython.longlong = buffer[position]
    if raw < 0x80:
        return raw, position + 1
    if buffer[position + 1] < 0x80:
        return (raw & 0x7F) | (cython.cast(cython.longlong, buffer[position + 1]) << 7), position + 2
    return -1, position


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _short_record(
    buffer: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    index: cython.Py_ssize_t,
) -> tuple[cython.Py_ssize_t, cython.longlong, cython.longlong]:
    """Check a record without headers whose numbers have one or two bytes each, as nearly all have: (position
    after it, timestamp delta, key length). The position is 0 for any other, to be looked at closely."""
    raw: cython.longlong
    timestamp: cython.longlong
    key_length: cython.longlong
    # Four numbers and the attributes are read before it is known what is in the record.
    if end - position < 16:
        return 0, 0, 0
    raw, position = _short(buffer, position)
    if raw < 14 or raw & 1 or (raw >> 1) > end - position:
        return 0, 0, 0
    end = position + cython.cast(cython.Py_ssize_t, raw >> 1)
    timestamp, position = _short(buffer, position + 1)
    raw, position = _short(buffer, position)
    if timestamp < 0 or raw != index << 1:
        return 0, 0, 0
    raw, position = _short(buffer, position)
    key_length = (raw >> 1) ^ -(raw & 1)
    if raw < 0 or key_length < -1 or key_length > end - position:
        return 0, 0, 0
    if key_length > 0:
        position += cython.cast(cython.Py_ssize_t, key_length)
    if end - position < 2:
        return 0, 0, 0
    raw, position = _short(buffer, position)
    # Behind the value comes the number of headers, none, and nothing else.
    if raw < 0 or raw & 1 or (raw >> 1) != end - position - 1 or buffer[end - 1] != 0:
        return 0, 0, 0
    return end, (timestamp >> 1) ^ -(timestamp & 1), key_length


@cython.cclass
class RecordWalk:
    """A walk over the records of one batch: what they are checked against, and what was found.

    `index` and `position` are those of the next record. After errors 11 and 12 that is the record after the
    refused one; `timestamp` is then the refused record's. Otherwise `timestamp` is the highest one and
    `timestamp_index` the first record that has it, or the last record if none has a timestamp."""

    def __init__(
        self,
        count: cython.Py_ssize_t,
        base_timestamp: cython.longlong,
        timestamp_min: cython.longlong,
        timestamp_max: cython.longlong,
        needs_key: cython.bint,
        position: cython.Py_ssize_t = 0,
    ) -> None:
        if position < 0:
            raise ValueError("a walk cannot start before the buffer")
        self.count = count
        self.base_timestamp = base_timestamp
        self.timestamp_min = timestamp_min
        self.timestamp_max = timestamp_max
        self.needs_key = needs_key
        self.index = 0
        self.position = position
        self.timestamp = -1
        self.timestamp_index = count - 1

    def run(self, buffer: cython.const[cython.uchar][::1]) -> int:
        """Check the records from the next one on, which must fill the buffer; return 0 or the error."""
        return _run(buffer, self)


@cython.cfunc
def _run(buffer: cython.const[cython.uchar][::1], walk: RecordWalk) -> cython.int:
    error: cython.int
    # Below this size a walk takes microseconds, less than handing the interpreter lock over and back.
    if buffer.shape[0] - walk.position > 65536:
        with cython.nogil:
            error = _walk(buffer, walk)
    else:
        error = _walk(buffer, walk)
    return error


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walk(buffer: cython.const[cython.uchar][::1], walk: RecordWalk) -> cython.int:
    index: cython.Py_ssize_t
    position: cython.Py_ssize_t = walk.position
    after: cython.Py_ssize_t
    end: cython.Py_ssize_t = buffer.shape[0]
    error: cython.int
    length: cython.longlong
    key_length: cython.longlong
    timestamp: cython.longlong
    max_timestamp: cython.longlong = -1
    for index in range(walk.index, walk.count):
        walk.index = index
        after, timestamp, key_length = _short_record(buffer, position, end, index)
        if after == 0:
            length, position = _varint(buffer, position, end, 32)
            if position < 0 or length < 6 or length > end - position:
                return 1
            after = position + cython.cast(cython.Py_ssize_t, length)
            error, timestamp, key_length = _check_body(buffer, position, after, index)
            if error != 0:
                return error
        position = after
        if _overflows(walk.base_timestamp, timestamp):
            return 10
        timestamp += walk.base_timestamp
        if key_length < 0 and walk.needs_key:
            return _refused(walk, position, timestamp, 11)
        if (timestamp < walk.timestamp_min or timestamp > walk.timestamp_max) and timestamp != -1:
            return _refused(walk, position, timestamp, 12)
        if timestamp > max_timestamp:
            max_timestamp = timestamp
            walk.timestamp_index = index
    walk.index = walk.count
    walk.position = position
    walk.timestamp = max_timestamp
    return 0 if position == end else 9


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _refused(
    walk: RecordWalk, position: cython.Py_ssize_t, timestamp: cython.longlong, error: cython.int
) -> cython.int:
    """Note the refused record; the walk can go on after it."""
    walk.index += 1
    walk.position = position
    walk.timestamp = timestamp
    return error


@cython.boundscheck(False)
@cython.wraparound(False)
def find_timestamp(
    buffer: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    base_timestamp: cython.longlong,
    target: cython.longlong,
) -> tuple:
    """(offset delta, timestamp) of the first of `count` records at `position` that is not before `target`.

    (-1, -1) where there is none, and (-2, -1) where the bytes are malformed."""
    _: cython.Py_ssize_t
    record_end: cython.Py_ssize_t
    end: cython.Py_ssize_t = buffer.shape[0]
    length: cython.longlong
    timestamp: cython.longlong
    if position < 0:
        return -2, -1
    for _ in range(count):
        length, position = _varint(buffer, position, end, 32)
        if position < 0 or length < 6 or length > end - position:
            return -2, -1
        record_end = position + cython.cast(cython.Py_ssize_t, length)
        timestamp, position = _varint(buffer, position + 1, record_end, 64)
        if position < 0 or _overflows(base_timestamp, timestamp):
            return -2, -1
        if base_timestamp + timestamp >= target:
            length, position = _varint(buffer, position, record_end, 32)
            if position < 0 or length < 0:
                return -2, -1
            return length, base_timestamp + timestamp
        position = record_end
    return -1, -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _big_endian(
    buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, width: cython.int
) -> cython.longlong:
    """The signed integer of `width` bytes at `position`; the caller has checked that they are there."""
    index: cython.Py_ssize_t
    value: cython.longlong = buffer[position]
    if value >= 0x80:
        value -= 0x100
    for index in range(position + 1, position + width):
        value = value * 256 + buffer[index]
    return value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _batch_size(buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t) -> cython.longlong:
    """Size of the whole batch at `position`; 0 where it is not all there, -1 where no batch can start so."""
    size: cython.longlong
    if position < 0 or buffer.shape[0] - position < 17:
        return 0
    size = _big_endian(buffer, position + 8, 4) + 12
    if size < 61 or buffer[position + 16] != 2 or buffer[position] >= 0x80:
        return -1
    return size if size <= buffer.shape[0] - position else 0


def find_offset(buffer: cython.const[cython.uchar][::1], target: cython.longlong) -> tuple:
    """(position, size) of the first whole batch whose last offset is not below `target`.

    Where there is none: (-1, position where the whole batches end), for the caller to read on from there."""
    position: cython.Py_ssize_t = 0
    size: cython.longlong
    if target < 0:
        target = 0
    while True:
        size = _batch_size(buffer, position)
        if size <= 0:
            return -1, position
        if _big_endian(buffer, position, 8) - target >= -_big_endian(buffer, position + 23, 4):
            return position, size
        position += cython.cast(cython.Py_ssize_t, size)


def next_batch(buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t) -> tuple:
    """(size, base offset, last offset delta, max timestamp) of the batch at `position`.

    The size is 0 where the batch is not all in the buffer, and -1 where no batch of magic 2 can start so."""
    size: cython.longlong = _batch_size(buffer, position)
    if size <= 0:
        return size, -1, -1, -1
    return (
        size,
        _big_endian(buffer, position, 8),
        _big_endian(buffer, position + 23, 4),
        _big_endian(buffer, position + 35, 8),
    )


def scan_batches(buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t) -> list:
    """(position, size, base offset, last offset delta, max timestamp) of each whole batch from `position` on.

    It stops at the first batch that is cut off or malformed; next_batch tells which."""
    found: list = []
    size: cython.longlong = _batch_size(buffer, position)
    while size > 0:
        found.append(
            (
                position,
                size,
                _big_endian(buffer, position, 8),
                _big_endian(buffer, position + 23, 4),
                _big_endian(buffer, position + 35, 8),
            )
        )
        position += cython.cast(cython.Py_ssize_t, size)
        size = _batch_size(buffer, position)
    return found


@cython.cclass
class PlainRules:
    """What a topic demands of batches that it keeps as they came."""

    def __init__(
        self,
        timestamp_before_max_ms: cython.longlong,
        timestamp_after_max_ms: cython.longlong,
        needs_key: cython.bint,
        batch_bytes_max: cython.longlong,
    ) -> None:
        self.timestamp_before_max_ms = timestamp_before_max_ms
        self.timestamp_after_max_ms = timestamp_after_max_ms
        self.needs_key = needs_key
        self.batch_bytes_max = batch_bytes_max


@cython.cclass
class CheckedBatch:
    """A batch that may be appended: only its base offset and leader epoch are still to be written into it."""

    def __init__(
        self,
        data: object,
        count: cython.longlong,
        last_offset_delta: cython.longlong,
        max_timestamp: cython.longlong,
        max_timestamp_delta: cython.longlong,
        attributes: cython.longlong,
        producer_id: cython.longlong,
        producer_epoch: cython.longlong,
        base_sequence: cython.longlong,
    ) -> None:
        self.data = data
        self.size = len(data)
        self.count = count
        self.last_offset_delta = last_offset_delta
        self.max_timestamp = max_timestamp
        self.max_timestamp_delta = max_timestamp_delta
        self.attributes = attributes
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence


@cython.ccall
def check_plain(data: object, rules: PlainRules, now_ms: cython.longlong) -> CheckedBatch:
    """The one batch that fills `data`, if there is nothing to refuse, decompress or change in it; None for
    every other batch, about which this says nothing."""
    buffer: cython.const[cython.uchar][::1] = data
    size: cython.Py_ssize_t = buffer.shape[0]
    if size < 61 or size > rules.batch_bytes_max:
        return None
    if _big_endian(buffer, 0, 8) != 0 or _batch_size(buffer, 0) != size:
        return None
    batch: CheckedBatch = CheckedBatch.__new__(CheckedBatch)
    batch.data = data
    batch.size = size
    batch.attributes = _big_endian(buffer, 21, 2)
    batch.last_offset_delta = _big_endian(buffer, 23, 4)
    batch.max_timestamp = _big_endian(buffer, 35, 8)
    batch.producer_id = _big_endian(buffer, 43, 8)
    batch.producer_epoch = _big_endian(buffer, 51, 2)
    batch.base_sequence = _big_endian(buffer, 53, 4)
    batch.count = _big_endian(buffer, 57, 4)
    # Any other bit means: compressed, timestamps set by a broker, or a marker.
    if (batch.attributes | TRANSACTIONAL_FLAG) != TRANSACTIONAL_FLAG:
        return None
    if batch.count <= 0 or batch.count > (size - 61) // 7 or batch.last_offset_delta != batch.count - 1:
        return None
    if batch.producer_id >= 0 and (batch.producer_epoch < 0 or batch.base_sequence < 0):
        return None
    if not _records_are_plain(buffer, batch, rules, now_ms):
        return None
    crc: cython.longlong = _big_endian(buffer, 17, 4) & 0xFFFFFFFF
    return batch if crc32c(data[CRC_START:]) == crc else None


@cython.cfunc
def _records_are_plain(
    buffer: cython.const[cython.uchar][::1],
    batch: CheckedBatch,
    rules: PlainRules,
    now_ms: cython.longlong,
) -> cython.bint:
    walk: RecordWalk = RecordWalk.__new__(RecordWalk)
    walk.index = 0
    walk.position = 61
    walk.count = batch.count
    walk.base_timestamp = _big_endian(buffer, 27, 8)
    walk.timestamp_min = now_ms - rules.timestamp_before_max_ms
    walk.timestamp_max = LONG_MAX
    if rules.timestamp_after_max_ms <= LONG_MAX - now_ms:
        walk.timestamp_max = now_ms + rules.timestamp_after_max_ms
    walk.needs_key = rules.needs_key
    walk.timestamp_index = batch.count - 1
    if _run(buffer, walk) != 0 or walk.timestamp != batch.max_timestamp:
        return False
    batch.max_timestamp_delta = walk.timestamp_index
    return True
