"""Walks over record batches (magic 2) and the records in them: bytes and ints, no object made per record.

Every read is checked against the buffer's end, so hostile bytes give an error number, never a wild read.
Errors of walk_records: 1 record length, 2 timestamp varint, 3 offset delta, 4 key length, 5 value length,
6 header count, 7 header, 8 bytes left in a record, 9 bytes left after the last record, 10 timestamp beyond
64 bits, 11 no key though one is required, 12 timestamp out of range. 11 and 12 are a record's own fault: the
walk may be resumed after it, at the index and position that were returned."""

import cython

LONG_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)


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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walk(
    buffer: cython.const[cython.uchar][::1],
    start: tuple[cython.Py_ssize_t, cython.Py_ssize_t],
    count: cython.Py_ssize_t,
    base_timestamp: cython.longlong,
    limits: tuple[cython.longlong, cython.longlong, cython.bint],
) -> tuple[cython.int, cython.Py_ssize_t, cython.Py_ssize_t, cython.longlong, cython.Py_ssize_t]:
    index: cython.Py_ssize_t
    position: cython.Py_ssize_t = start[1]
    after: cython.Py_ssize_t
    end: cython.Py_ssize_t = buffer.shape[0]
    error: cython.int
    length: cython.longlong
    key_length: cython.longlong
    timestamp: cython.longlong
    max_timestamp: cython.longlong = -1
    max_index: cython.Py_ssize_t = count - 1
    for index in range(start[0], count):
        after, timestamp, key_length = _short_record(buffer, position, end, index)
        if after == 0:
            length, position = _varint(buffer, position, end, 32)
            if position < 0 or length < 6 or length > end - position:
                return 1, index, -1, -1, -1
            after = position + cython.cast(cython.Py_ssize_t, length)
            error, timestamp, key_length = _check_body(buffer, position, after, index)
            if error != 0:
                return error, index, -1, -1, -1
        position = after
        if _overflows(base_timestamp, timestamp):
            return 10, index, -1, -1, -1
        timestamp += base_timestamp
        if key_length < 0 and limits[2]:
            return 11, index, position, -1, -1
        if (timestamp < limits[0] or timestamp > limits[1]) and timestamp != -1:
            return 12, index, position, timestamp, -1
        if timestamp > max_timestamp:
            max_timestamp = timestamp
            max_index = index
    if position != end:
        return 9, count, -1, -1, -1
    return 0, count, position, max_timestamp, max_index


def walk_records(
    buffer: cython.const[cython.uchar][::1],
    start: tuple[cython.Py_ssize_t, cython.Py_ssize_t],
    count: cython.Py_ssize_t,
    base_timestamp: cython.longlong,
    limits: tuple[cython.longlong, cython.longlong, cython.bint],
) -> tuple:
    """Check records `start[0]` to `count`, the first of them at `start[1]`; they must fill the buffer.

    `limits` are the lowest and highest timestamp let through (-1, no timestamp, always is) and whether a
    record needs a key. Gives (error, index, position after that record, highest timestamp, index of the first
    record that has it); for error 12 the timestamp is the refused one."""
    if start[0] < 0 or start[1] < 0:
        raise ValueError("a walk cannot start before the buffer")
    result: tuple[cython.int, cython.Py_ssize_t, cython.Py_ssize_t, cython.longlong, cython.Py_ssize_t]
    # Below this size a walk takes microseconds, less than handing the interpreter lock over and back.
    if buffer.shape[0] - start[1] > 65536:
        with cython.nogil:
            result = _walk(buffer, start, count, base_timestamp, limits)
    else:
        result = _walk(buffer, start, count, base_timestamp, limits)
    return result


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


def plain_batch(
    buffer: cython.const[cython.uchar][::1],
    rules: tuple[cython.longlong, cython.longlong, cython.bint, cython.longlong],
    now_ms: cython.longlong,
) -> object:
    """What the one batch that fills the buffer says of itself, if there is nothing to refuse, decompress or
    change: (CRC, count, last offset delta, base timestamp, highest timestamp, place of the first record that
    has it, attributes, producer id, epoch, sequence). None for every other batch. The CRC is not checked.

    `rules`: how long before and after now a timestamp may be, whether a record needs a key, bytes at most."""
    size: cython.Py_ssize_t = buffer.shape[0]
    if size < 61 or size > rules[3] or _big_endian(buffer, 0, 8) != 0 or _batch_size(buffer, 0) != size:
        return None
    limits: tuple[cython.longlong, cython.longlong, cython.bint] = (
        now_ms - rules[0],
        LONG_MAX if rules[1] > LONG_MAX - now_ms else now_ms + rules[1],
        rules[2],
    )
    attributes: cython.longlong = _big_endian(buffer, 21, 2)
    delta: cython.longlong = _big_endian(buffer, 23, 4)
    base_timestamp: cython.longlong = _big_endian(buffer, 27, 8)
    max_timestamp: cython.longlong = _big_endian(buffer, 35, 8)
    producer_id: cython.longlong = _big_endian(buffer, 43, 8)
    epoch: cython.longlong = _big_endian(buffer, 51, 2)
    sequence: cython.longlong = _big_endian(buffer, 53, 4)
    count: cython.longlong = _big_endian(buffer, 57, 4)
    # Compressed, stamped by a broker, a marker: all but the bit of a transaction.
    if (attributes | 0x10) != 0x10 or count <= 0 or delta != count - 1 or count > (size - 61) // 7:
        return None
    if producer_id >= 0 and (epoch < 0 or sequence < 0):
        return None
    result: tuple[cython.int, cython.Py_ssize_t, cython.Py_ssize_t, cython.longlong, cython.Py_ssize_t]
    start: tuple[cython.Py_ssize_t, cython.Py_ssize_t] = (0, 61)
    if size > 65536:
        with cython.nogil:
            result = _walk(buffer, start, count, base_timestamp, limits)
    else:
        result = _walk(buffer, start, count, base_timestamp, limits)
    if result[0] != 0 or result[3] != max_timestamp:
        return None
    crc: cython.longlong = _big_endian(buffer, 17, 4) & 0xFFFFFFFF
    place: cython.Py_ssize_t = result[4]
    return crc, count, delta, base_timestamp, max_timestamp, place, attributes, producer_id, epoch, sequence
