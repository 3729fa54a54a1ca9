"""Walks over record batches (magic 2) and the records inside them: bytes and ints only, no objects made per record.

Every read is checked against the buffer's end, so hostile bytes give an error number, never a wild read.
Errors of walk_records: 1 record length, 2 varint, 3 offset delta, 4 key length, 5 value length, 6 header count,
7 header, 8 bytes left in a record, 9 bytes left after the last record, 10 timestamp beyond 64 bits,
11 no key though one is required, 12 timestamp out of range. 11 and 12 are a record's own fault: the walk may be
resumed after it, at the index and position that were returned."""

import cython


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _varint(
    buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t, bits: cython.int
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """One zigzag varint of at most `bits` bits: (value, position after it), or position -1 where it is malformed."""
    byte: cython.ulonglong
    raw: cython.ulonglong = 0
    shift: cython.int = 0
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
def _skip_headers(
    buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[cython.int, cython.Py_ssize_t]:
    """Step over a record's headers: (error, position after them)."""
    count: cython.longlong
    length: cython.longlong
    index: cython.longlong
    count, position = _varint(buffer, position, end, 32)
    if position < 0:
        return 2, 0
    if count < 0 or count > (end - position) // 2:
        return 6, 0
    for index in range(count):  # noqa: B007
        length, position = _varint(buffer, position, end, 32)
        if position < 0 or length < 0 or length > end - position:
            return 7, 0
        length, position = _varint(buffer, position + length, end, 32)
        if position < 0 or length < -1 or length > end - position:
            return 7, 0
        if length > 0:
            position += length
    return 0, position


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _walk(
    buffer: cython.const[cython.uchar][::1],
    start: tuple[cython.Py_ssize_t, cython.Py_ssize_t],
    count: cython.Py_ssize_t,
    base_timestamp: cython.longlong,
    limits: tuple[cython.longlong, cython.longlong, cython.bint],
) -> tuple[cython.int, cython.Py_ssize_t, cython.Py_ssize_t, cython.longlong, cython.Py_ssize_t]:
    index: cython.Py_ssize_t = start[0]
    position: cython.Py_ssize_t = start[1]
    after: cython.Py_ssize_t
    record_end: cython.Py_ssize_t
    end: cython.Py_ssize_t = buffer.shape[0]
    error: cython.int
    length: cython.longlong
    key_length: cython.longlong
    timestamp: cython.longlong
    half: cython.longlong
    half_max: cython.longlong = (cython.cast(cython.longlong, 1) << 62) - 1  # C wraps, Python does not: refuse sooner
    max_timestamp: cython.longlong = -1
    max_index: cython.Py_ssize_t = count - 1
    while index < count:
        length, after = _varint(buffer, position, end, 32)
        if after < 0:
            return 2, index, position, -1, -1
        if length < 6 or length > end - after:
            return 1, index, position, -1, -1
        position = after
        record_end = position + cython.cast(cython.Py_ssize_t, length)
        timestamp, position = _varint(buffer, position + 1, record_end, 64)
        if position < 0:
            return 2, index, record_end, -1, -1
        half = (timestamp >> 1) + (base_timestamp >> 1)
        if half >= half_max or half < -half_max:
            return 10, index, record_end, -1, -1
        timestamp += base_timestamp
        length, position = _varint(buffer, position, record_end, 32)
        if position < 0 or length != index:
            return (2 if position < 0 else 3), index, record_end, -1, -1
        key_length, position = _varint(buffer, position, record_end, 32)
        if position < 0 or key_length < -1 or key_length > record_end - position:
            return (2 if position < 0 else 4), index, record_end, -1, -1
        if key_length > 0:
            position += key_length
        length, position = _varint(buffer, position, record_end, 32)
        if position < 0 or length < -1 or length > record_end - position:
            return (2 if position < 0 else 5), index, record_end, -1, -1
        if length > 0:
            position += length
        if position == record_end - 1 and buffer[position] == 0:
            position = record_end
        else:
            error, position = _skip_headers(buffer, position, record_end)
            if error != 0:
                return error, index, record_end, -1, -1
            if position != record_end:
                return 8, index, record_end, -1, -1
        if key_length < 0 and limits[2]:
            return 11, index, record_end, -1, -1
        if timestamp > max_timestamp:
            max_timestamp = timestamp
            max_index = index
        if (timestamp < limits[0] or timestamp > limits[1]) and timestamp != -1:
            return 12, index, record_end, timestamp, -1
        index += 1
    if position != end:
        return 9, index, position, -1, -1
    return 0, index, position, max_timestamp, max_index


def walk_records(
    buffer: cython.const[cython.uchar][::1],
    start: tuple[cython.Py_ssize_t, cython.Py_ssize_t],
    count: cython.Py_ssize_t,
    base_timestamp: cython.longlong,
    limits: tuple[cython.longlong, cython.longlong, cython.bint],
) -> tuple:
    """Check records `start[0]` to `count`, the first of them at `start[1]`; they must fill the buffer to its end.

    `limits` are the lowest and highest timestamp let through (-1, no timestamp, always is) and whether a record
    needs a key. Gives (error, index, position after that record, highest timestamp, index of its first record);
    for error 12 the timestamp is the refused one."""
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
    index: cython.Py_ssize_t
    record_end: cython.Py_ssize_t
    end: cython.Py_ssize_t = buffer.shape[0]
    length: cython.longlong
    timestamp: cython.longlong
    for index in range(count):  # noqa: B007
        length, position = _varint(buffer, position, end, 32)
        if position < 0 or length < 6 or length > end - position:
            return -2, -1
        record_end = position + cython.cast(cython.Py_ssize_t, length)
        timestamp, position = _varint(buffer, position + 1, record_end, 64)
        if position < 0:
            return -2, -1
        if timestamp >= target - base_timestamp:
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
    if size < 61 or buffer[position + 16] != 2:
        return -1
    return size if size <= buffer.shape[0] - position else 0


def find_offset(buffer: cython.const[cython.uchar][::1], target: cython.longlong) -> tuple:
    """(position, size) of the first whole batch whose last offset is not below `target`.

    Where there is none: (-1, position where the whole batches end), for the caller to read on from there."""
    position: cython.Py_ssize_t = 0
    size: cython.longlong
    while True:
        size = _batch_size(buffer, position)
        if size <= 0:
            return -1, position
        if _big_endian(buffer, position, 8) >= target - _big_endian(buffer, position + 23, 4):
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
