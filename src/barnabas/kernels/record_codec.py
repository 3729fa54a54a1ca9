"""Records of a batch (magic 2) to and from Python objects: rows of (key, value, headers, timestamp, offset).

A header is (name, value or None); names are text, with bytes that are not UTF-8 kept by surrogateescape, so
that what was read is written back unchanged. Malformed bytes raise ValueError, and nothing is read beyond
their end."""

import cython


@cython.cfunc
@cython.inline
def _put_varint(out: bytearray, value: cython.longlong) -> cython.void:
    raw: cython.ulonglong
    if value < 0:
        raw = cython.cast(cython.ulonglong, -1 - value) * 2 + 1
    else:
        raw = cython.cast(cython.ulonglong, value) * 2
    while raw >= 0x80:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)


@cython.cfunc
@cython.inline
def _put_bytes(out: bytearray, value: object) -> cython.void:
    if value is None:
        out.append(1)
    else:
        _put_varint(out, len(value))
        out += value


def encode_records(
    records: object, base_timestamp: cython.longlong, offset_deltas: list | None = None
) -> bytearray:
    """The records, given as (timestamp, key, value, headers), one after the other as a batch holds them.

    They are numbered from 0 on, unless offset deltas are given."""
    out: bytearray = bytearray()
    body: bytearray = bytearray()
    index: cython.Py_ssize_t
    for index, (timestamp, key, value, headers) in enumerate(records):
        body.clear()
        body.append(0)
        _put_varint(body, timestamp - base_timestamp)
        _put_varint(body, index if offset_deltas is None else offset_deltas[index])
        _put_bytes(body, key)
        _put_bytes(body, value)
        _put_varint(body, len(headers))
        for name, header_value in headers:
            _put_bytes(body, name.encode("utf-8", "surrogateescape"))
            _put_bytes(body, header_value)
        _put_varint(out, len(body))
        out += body
    return out


@cython.cfunc
@cython.inline
@cython.exceptval(check=True)
@cython.boundscheck(False)
@cython.wraparound(False)
def _varint(
    data: bytes, position: cython.Py_ssize_t, end: cython.Py_ssize_t, bits: cython.int
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """One zigzag varint of at most `bits` bits and the position after it."""
    byte: cython.ulonglong
    raw: cython.ulonglong = 0
    shift: cython.int = 0
    while position < end and shift < bits:
        byte = cython.cast(cython.uchar, data[position])
        position += 1
        if shift + 7 > bits and (byte >> (bits - shift)) != 0:
            break
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw & 1:
                return -cython.cast(cython.longlong, raw >> 1) - 1, position
            return cython.cast(cython.longlong, raw >> 1), position
        shift += 7
    raise ValueError("a varint of a record is malformed")


@cython.cfunc
@cython.inline
@cython.exceptval(check=True)
def _length(
    data: bytes, position: cython.Py_ssize_t, end: cython.Py_ssize_t, lowest: cython.int
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """A length that is at least `lowest` and within `end`, and the position after it."""
    length: cython.longlong
    length, position = _varint(data, position, end, 32)
    if length < lowest or length > end - position:
        raise ValueError("a length inside a record is out of bounds")
    return cython.cast(cython.Py_ssize_t, length), position


@cython.cfunc
def _headers(data: bytes, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> list:
    """The headers that lie between `position` and `end`, which they must reach exactly."""
    found: list = []
    _: cython.Py_ssize_t
    count: cython.Py_ssize_t
    length: cython.Py_ssize_t
    count, position = _length(data, position, end, 0)
    for _ in range(count):
        length, position = _length(data, position, end, 0)
        name = data[position : position + length].decode("utf-8", "surrogateescape")
        position += length
        length, position = _length(data, position, end, -1)
        if length < 0:
            found.append((name, None))
        else:
            found.append((name, data[position : position + length]))
            position += length
    if position != end:
        raise ValueError("bytes are left over in a record")
    return found


def decode_records(
    data: bytes, position: cython.Py_ssize_t, count: cython.Py_ssize_t, base_timestamp: int, base_offset: int
) -> list:
    """The `count` records from `position` to the end of `data`, which they must reach exactly."""
    found: list = []
    _: cython.Py_ssize_t
    length: cython.Py_ssize_t
    end: cython.Py_ssize_t = len(data)
    record_end: cython.Py_ssize_t
    timestamp_delta: cython.longlong
    offset_delta: cython.longlong
    if position < 0:
        raise ValueError("a position is not negative")
    for _ in range(count):
        length, position = _length(data, position, end, 6)
        record_end = position + length
        timestamp_delta, position = _varint(data, position + 1, record_end, 64)
        offset_delta, position = _varint(data, position, record_end, 32)
        key = None
        value = None
        length, position = _length(data, position, record_end, -1)
        if length >= 0:
            key = data[position : position + length]
            position += length
        length, position = _length(data, position, record_end, -1)
        if length >= 0:
            value = data[position : position + length]
            position += length
        headers = _headers(data, position, record_end)
        found.append((key, value, headers, base_timestamp + timestamp_delta, base_offset + offset_delta))
        position = record_end
    if position != end:
        raise ValueError("bytes are left over after the last record")
    return found
