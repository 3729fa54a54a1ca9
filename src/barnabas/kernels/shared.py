# cython: boundscheck=False, wraparound=False
"""What several kernels need: big-endian numbers, varints, the layout of batches and records.

These are the lines that decide whether bytes from a peer are read safely, so they are written once. Other
kernels reach them through shared.pxd with C calls. A call costs about a nanosecond and is not inlined, so a
loop over records calls read_record once for each record instead of read_varint six times.

`data` and `out` are pointers when compiled and buffers when interpreted; both are indexed from their start.
Readers never look at `end` or beyond."""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import (
        PyByteArray_AS_STRING,
        PyByteArray_FromStringAndSize,
        PyByteArray_Resize,
    )
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize

Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])
Output = cython.typedef(cython.pointer[cython.uchar])
Size = cython.typedef(cython.Py_ssize_t)
Long = cython.typedef(cython.longlong)

# Where the fields of a batch header (magic 2) begin. The CRC covers everything from the attributes on.
BASE_OFFSET_AT = 0
BATCH_LENGTH_AT = 8  # The length does not count the base offset and itself.
LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
LAST_OFFSET_DELTA_AT = 23
BASE_TIMESTAMP_AT = 27
MAX_TIMESTAMP_AT = 35
PRODUCER_ID_AT = 43
PRODUCER_EPOCH_AT = 51
BASE_SEQUENCE_AT = 53
RECORD_COUNT_AT = 57
HEADER_SIZE = 61
LENGTH_OVERHEAD = 12
MAGIC = 2

# A record is malformed in one of these ways; 0 is for one that is not.
RECORD_LENGTH = cython.declare(cython.int, 1)
TIMESTAMP_DELTA = cython.declare(cython.int, 2)
OFFSET_DELTA = cython.declare(cython.int, 3)
KEY_LENGTH = cython.declare(cython.int, 4)
VALUE_LENGTH = cython.declare(cython.int, 5)
HEADER_COUNT = cython.declare(cython.int, 6)
HEADER = cython.declare(cython.int, 7)
RECORD_END = cython.declare(cython.int, 8)

RECORD_ERRORS = (
    "",
    "the length of the record is malformed or out of bounds",
    "the timestamp of the record is malformed",
    "the offset of the record is malformed",
    "the length of the key is malformed or out of bounds",
    "the length of the value is malformed or out of bounds",
    "the number of headers is malformed or out of bounds",
    "a header is malformed or out of bounds",
    "bytes are left over at the end of the record",
)

# The attributes, a timestamp, an offset, the lengths of key and value, the number of headers: one byte each.
RECORD_BYTES_MIN = cython.declare(cython.Py_ssize_t, 6)
LONG_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_number(data: Input, position: Size, width: cython.int) -> Long:
    """The signed big-endian integer of `width` bytes; the caller has checked that they are there."""
    index: Size
    value: Long = data[position]
    if value >= 0x80:
        value -= 0x100
    # The compiler unrolls loops of a known length.
    if width == 4:
        for index in range(position + 1, position + 4):
            value = value * 256 + data[index]
    elif width == 8:
        for index in range(position + 1, position + 8):
            value = value * 256 + data[index]
    else:
        for index in range(position + 1, position + width):
            value = value * 256 + data[index]
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def write_number(out: Output, position: Size, width: cython.int, value: Long) -> Size:
    """Writes a big-endian integer and returns the position after it; the caller has made room."""
    index: Size
    for index in range(position + width - 1, position - 1, -1):
        out[index] = cython.cast(cython.uchar, value & 0xFF)
        value >>= 8
    return position + width


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_varint(
    data: Input, position: Size, end: Size, bits: cython.int
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A zigzag varint of at most `bits` bits: (value, position after it), the position -1 if malformed."""
    return _varint(data, position, end, bits)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint(
    data: Input, position: Size, end: Size, bits: cython.int
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """As read_varint. Nearly all varints have one byte, and the compiler inlines what they need."""
    byte: cython.ulonglong
    if position < end and data[position] < 0x80:
        byte = data[position]
        return cython.cast(cython.longlong, byte >> 1) ^ -cython.cast(cython.longlong, byte & 1), position + 1
    return _read_long_varint(data, position, end, bits)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_long_varint(
    data: Input, position: Size, end: Size, bits: cython.int
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    byte: cython.ulonglong
    raw: cython.ulonglong = 0
    shift: cython.int = 0
    while position < end and shift < bits:
        byte = data[position]
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
def copy_bytes(data: Input, start: Size, end: Size) -> bytes:
    """The bytes from `start` to `end`, which the caller has checked."""
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, data + start), end - start)
    return bytes(data[start:end])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_length(
    data: Input, position: Size, end: Size, lowest: Long
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """A length of at least `lowest` and at most the number of bytes after it: (length, position after it).

    The position is -1 if the length is malformed or out of these bounds."""
    return _length(data, position, end, lowest)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _length(
    data: Input, position: Size, end: Size, lowest: Long
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    length: Long
    length, position = _varint(data, position, end, 32)
    if position < 0 or length < lowest or length > end - position:
        return 0, -1
    return cython.cast(cython.Py_ssize_t, length), position


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_unsigned_varint(data: Input, position: Size, end: Size) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """An unsigned varint of 32 bits: (value, position after it), the position -1 if it is malformed."""
    value: Long = 0
    byte: Long
    shift: cython.int = 0
    while position < end:
        byte = data[position]
        position += 1
        # The fifth byte has room for four bits. A last byte of zero says nothing: no writer adds one.
        if (shift == 28 and byte > 15) or (shift > 0 and byte == 0):
            break
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    return 0, -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def write_unsigned_varint(out: Output, position: Size, value: cython.ulonglong) -> Size:
    """Writes a varint and returns the position after it; the caller has made room for up to 10 bytes."""
    while value >= 0x80:
        out[position] = cython.cast(cython.uchar, (value & 0x7F) | 0x80)
        value >>= 7
        position += 1
    out[position] = cython.cast(cython.uchar, value)
    return position + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _zigzag(value: Long) -> cython.ulonglong:
    if value < 0:
        return cython.cast(cython.ulonglong, -1 - value) * 2 + 1
    return cython.cast(cython.ulonglong, value) * 2


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def write_varint(out: Output, position: Size, value: Long) -> Size:
    """Writes a zigzag varint and returns the position after it; the caller has made room for 10 bytes."""
    return write_unsigned_varint(out, position, _zigzag(value))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def varint_size(value: Long) -> Size:
    """How many bytes write_varint needs."""
    raw: cython.ulonglong = _zigzag(value)
    size: Size = 1
    while raw >= 0x80:
        raw >>= 7
        size += 1
    return size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def sum_overflows(left: Long, right: Long) -> cython.bint:
    """Whether the sum needs more than 64 bits; C would wrap it."""
    if right > 0:
        return left > LONG_MAX - right
    return left < -LONG_MAX - 1 - right


@cython.cfunc
@cython.exceptval(-1, check=False)
def append_number(out: bytearray, width: cython.int, value: Long) -> cython.int:
    """Append a big-endian integer of `width` bytes."""
    start: Size = len(out)
    write_number(_longer(out, start + width), start, width, value)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def append_unsigned_varint(out: bytearray, value: cython.ulonglong) -> cython.int:
    if value < 0x80:
        out.append(value)
        return 0
    start: Size = len(out)
    end: Size = write_unsigned_varint(_longer(out, start + 10), start, value)
    return _cut(out, end)


@cython.cfunc
@cython.exceptval(-1, check=False)
def append_varint(out: bytearray, value: Long) -> cython.int:
    """Append a zigzag varint."""
    return append_unsigned_varint(out, _zigzag(value))


@cython.cfunc
@cython.inline
@cython.exceptval(check=True)
def _longer(out: bytearray, size: Size) -> Output:
    """Where the bytearray begins after it got `size` bytes."""
    if cython.compiled:
        PyByteArray_Resize(out, size)
        return cython.cast(Output, PyByteArray_AS_STRING(out))
    out.extend(bytes(size - len(out)))
    return out


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def _cut(out: bytearray, size: Size) -> cython.int:
    if cython.compiled:
        PyByteArray_Resize(out, size)
    else:
        del out[size:]
    return 0


@cython.cclass
class OpenBatch:
    """A batch whose `left` records are in `data`, decompressed, from `position` to `end`.

    `append_time` is the time of all records if the broker sets it, otherwise None. `next_offset` is the
    offset after the batch, which compaction may have left behind the last record."""

    def __init__(
        self,
        data: object,
        position: Size,
        end: Size,
        left: Size,
        base_offset: Long,
        base_timestamp: Long,
        append_time: object = None,
        leader_epoch: cython.int = -1,
        next_offset: Long = 0,
    ) -> None:
        if position < 0 or end < position or end > len(data) or left < 0:
            raise ValueError(f"{left} records from {position} to {end} are out of bounds: {len(data)} bytes")
        self.data = data
        self.position = position
        self.end = end
        self.left = left
        self.base_offset = base_offset
        self.base_timestamp = base_timestamp
        self.append_time = append_time
        self.leader_epoch = leader_epoch
        self.next_offset = next_offset


@cython.cclass
class Record:
    """Where the parts of one record are, as read_record and read_headers found them."""

    def __init__(self) -> None:
        self.end = self.timestamp_delta = self.offset_start = self.offset_delta = 0
        self.key_start = self.value_start = self.headers_start = 0
        self.key_length = self.value_length = -1
        self.header_count = self.header_bytes = 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_record(data: Input, position: Size, end: Size, record: Record) -> cython.int:
    """Note the parts of the record (magic 2) at `position`, up to its headers; returns 0 or the error.

    A key or value has the length -1 if it is null. Offsets are relative to those of the batch."""
    length: Size
    value: Long
    length, position = _length(data, position, end, RECORD_BYTES_MIN)
    if position < 0:
        return RECORD_LENGTH
    end = position + length
    record.end = end
    value, position = _varint(data, position + 1, end, 64)
    if position < 0:
        return TIMESTAMP_DELTA
    record.timestamp_delta = value
    record.offset_start = position
    value, position = _varint(data, position, end, 32)
    if position < 0:
        return OFFSET_DELTA
    record.offset_delta = value
    length, position = _length(data, position, end, -1)
    if position < 0:
        return KEY_LENGTH
    record.key_start = position
    record.key_length = length
    if length > 0:
        position += length
    length, position = _length(data, position, end, -1)
    if position < 0:
        return VALUE_LENGTH
    record.value_start = position
    record.value_length = length
    record.headers_start = position + length if length > 0 else position
    return 0


@cython.cclass
class RecordHeader:
    """Where the name and the value of one header are; the length of a value is -1 if it is null."""

    def __init__(self) -> None:
        self.name_start = self.name_length = self.value_start = self.value_length = 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_header(data: Input, position: Size, end: Size, header: RecordHeader) -> Size:
    """Note the parts of the header at `position`; returns the position after it, -1 if it is malformed."""
    length: Size
    length, position = _length(data, position, end, 0)
    if position < 0:
        return -1
    header.name_start = position
    header.name_length = length
    length, position = _length(data, position + length, end, -1)
    header.value_start = position
    header.value_length = length
    return position + length if length > 0 else position


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_headers(data: Input, record: Record) -> cython.int:
    """Check and count the headers of a record that read_record has read; returns 0 or the error.

    `headers_start` becomes the position of the first header, after their number. `header_bytes` is the size
    of all names and values. The headers must end where the record does."""
    position: Size = record.headers_start
    end: Size = record.end
    length: Size
    count: Size
    _: Size
    record.header_count = record.header_bytes = 0
    if position + 1 == end and data[position] == 0:
        record.headers_start = end
        return 0
    count, position = _length(data, position, end, 0)
    # Each header has two lengths of at least one byte.
    if position < 0 or count > (end - position) // 2:
        return HEADER_COUNT
    record.headers_start = position
    record.header_count = count
    for _ in range(count):
        length, position = _length(data, position, end, 0)
        if position < 0:
            return HEADER
        position += length
        record.header_bytes += length
        length, position = _length(data, position, end, -1)
        if position < 0:
            return HEADER
        if length > 0:
            position += length
            record.header_bytes += length
    return 0 if position == end else RECORD_END


@cython.ccall
def uncleared(size: cython.Py_ssize_t) -> bytearray:
    """A bytearray of that size with arbitrary contents, for callers that fill all of it before they read it.

    Clearing a buffer costs as much as receiving bytes into it."""
    if size < 0:
        raise ValueError(f"a size cannot be negative: {size}")
    if cython.compiled:
        return PyByteArray_FromStringAndSize(cython.NULL, size)
    return bytearray(size)
