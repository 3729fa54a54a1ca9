"""Records of a batch (magic 2) for consumers, as ConsumerRecord objects, and as rows for everybody else.

A header is (name, value or None); names are text, with bytes that are not UTF-8 kept by surrogateescape, so
that what was read is written back unchanged.

A cursor reads batch after batch, decompressed already, each in as many calls as its reader likes: between
two calls it stands before the next record. Malformed bytes raise ValueError, and nothing is read beyond
their end. What a deserializer raises goes through, with the cursor still before the record that it was
raised for."""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize

LONG_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
# Instead of a position, where bytes are wrong.
MALFORMED = cython.declare(cython.Py_ssize_t, -1)
OUT_OF_BOUNDS = cython.declare(cython.Py_ssize_t, -2)
OUT_OF_RANGE = cython.declare(cython.Py_ssize_t, -3)
ERRORS = {
    -1: "a varint of a record is malformed",
    -2: "a length inside a record is out of bounds",
    -3: "an offset or timestamp of a record is out of range",
}
NO_HEADERS: tuple = ()


# Not for the garbage collector: a record refers to nothing that refers to it, and it comes by the million.
@cython.no_gc
@cython.freelist(512)
@cython.cclass
class ConsumerRecord:
    """A record as it is read. Key and value are what the deserializers made of them, bytes without any."""

    topic = cython.declare(object, visibility="readonly")
    key = cython.declare(object, visibility="readonly")
    value = cython.declare(object, visibility="readonly")
    headers = cython.declare(tuple, visibility="readonly")
    offset = cython.declare(cython.longlong, visibility="readonly")
    timestamp = cython.declare(cython.longlong, visibility="readonly")
    partition = cython.declare(cython.int, visibility="readonly")
    leader_epoch = cython.declare(cython.int, visibility="readonly")
    timestamp_type = cython.declare(cython.int, visibility="readonly")
    serialized_key_size = cython.declare(cython.int, visibility="readonly")
    serialized_value_size = cython.declare(cython.int, visibility="readonly")

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        key: object = None,
        value: object = None,
        **facts: object,
    ) -> None:
        """A record made by hand, for interceptors and tests; `facts` are the other attributes by name."""
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.key = key
        self.value = value
        self.headers = tuple(facts.pop("headers", ()))
        self.timestamp = facts.pop("timestamp", -1)
        self.timestamp_type = facts.pop("timestamp_type", 0)
        self.leader_epoch = facts.pop("leader_epoch", -1)
        self.serialized_key_size = facts.pop("serialized_key_size", -1)
        self.serialized_value_size = facts.pop("serialized_value_size", -1)
        if facts:
            raise TypeError(f"a record has no {', '.join(facts)}")

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint(
    data: cython.pointer[cython.const[cython.uchar]],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    bits: cython.int,
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """One zigzag varint of at most `bits` bits and the position after it, which is below 0 where it is wrong,
    or was before."""
    byte: cython.ulonglong
    raw: cython.ulonglong = 0
    shift: cython.int = 0
    if position < 0:
        return 0, position
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
    return 0, MALFORMED


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _length(
    data: cython.pointer[cython.const[cython.uchar]],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    lowest: cython.int,
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """A length that is at least `lowest` and within `end`, and the position after it, below 0 where wrong."""
    length: cython.longlong
    length, position = _varint(data, position, end, 32)
    if position >= 0 and (length < lowest or length > end - position):
        return 0, OUT_OF_BOUNDS
    return cython.cast(cython.Py_ssize_t, length), position


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _overflows(base: cython.longlong, delta: cython.longlong) -> cython.bint:
    if delta > 0:
        return base > LONG_MAX - delta
    return base < -LONG_MAX - 1 - delta


@cython.cfunc
@cython.inline
def _cut(
    data: cython.pointer[cython.const[cython.uchar]], start: cython.Py_ssize_t, length: cython.Py_ssize_t
) -> object:
    """A copy of the bytes there; None for a length below 0."""
    if length < 0:
        return None
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, data + start), length)
    return bytes(data[start : start + length])


@cython.cclass
class BatchCursor:
    """The records of a batch, and then of the next.

    `source` is (topic, partition, key deserializer, value deserializer): callables of topic and bytes, or
    None to keep the bytes."""

    topic: object
    key_deserializer: object
    value_deserializer: object
    partition: cython.int
    owner: object
    view: cython.const[cython.uchar][::1]
    data: cython.pointer[cython.const[cython.uchar]]
    position = cython.declare(cython.Py_ssize_t, visibility="readonly")
    end: cython.Py_ssize_t
    left = cython.declare(cython.Py_ssize_t, visibility="readonly")
    next_offset = cython.declare(cython.longlong, visibility="readonly")
    base_offset: cython.longlong
    base_timestamp: cython.longlong
    timestamp_type: cython.int
    leader_epoch: cython.int
    offset: cython.longlong
    timestamp: cython.longlong
    key_start: cython.Py_ssize_t
    key_length: cython.Py_ssize_t
    value_start: cython.Py_ssize_t
    value_length: cython.Py_ssize_t
    headers_start: cython.Py_ssize_t
    record_end: cython.Py_ssize_t

    def __init__(self, source: tuple) -> None:
        self.topic, self.partition, self.key_deserializer, self.value_deserializer = source
        self.owner = None
        self.position = self.end = self.left = 0
        self.next_offset = 0

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def open(self, data: object, place: tuple, count: int, facts: tuple, first_offset: int) -> None:
        """Go on with a batch: `count` records lie in `data` between the two positions of `place`, and those
        below `first_offset` are passed over. `facts` is (base offset, base timestamp, append time or None,
        leader epoch)."""
        base_offset, base_timestamp, append_time, leader_epoch = facts
        if data is not self.owner:
            # Batches that lie in the same memory follow each other.
            self.view = data if cython.compiled else memoryview(data)
            self.owner = data
        self.left = 0
        self.position, self.end = place
        if self.position < 0 or self.end < self.position or self.end > len(data) or count < 0:
            raise ValueError("a position or count is out of bounds")
        if cython.compiled:
            self.data = cython.address(self.view[0])
        else:
            self.data = self.view
        self.base_offset = base_offset
        self.timestamp_type = 0 if append_time is None else 1
        self.base_timestamp = base_timestamp if append_time is None else append_time
        self.leader_epoch = leader_epoch
        self.next_offset = first_offset
        self.left = count

    def take(self, out: list, room: cython.Py_ssize_t) -> None:
        """Append as many records as there are, at most `room`."""
        record: ConsumerRecord
        key_deserializer = self.key_deserializer
        value_deserializer = self.value_deserializer
        while room > 0 and _find(self):
            record = ConsumerRecord.__new__(ConsumerRecord)
            record.topic = self.topic
            record.partition = self.partition
            record.offset = self.offset
            record.timestamp = self.timestamp
            record.timestamp_type = self.timestamp_type
            record.leader_epoch = self.leader_epoch
            record.serialized_key_size = cython.cast(cython.int, self.key_length)
            record.serialized_value_size = cython.cast(cython.int, self.value_length)
            record.headers = _headers(self.data, self.headers_start, self.record_end)
            record.key = _cut(self.data, self.key_start, self.key_length)
            record.value = _cut(self.data, self.value_start, self.value_length)
            if key_deserializer is not None:
                record.key = key_deserializer(self.topic, record.key)
            if value_deserializer is not None:
                record.value = value_deserializer(self.topic, record.value)
            out.append(record)
            self.position = self.record_end
            self.left -= 1
            self.next_offset = self.offset + 1
            room -= 1


@cython.cfunc
@cython.exceptval(check=True)
def _find(cursor: BatchCursor) -> cython.bint:
    """Read where the parts of the next record are; false when there is none."""
    position: cython.Py_ssize_t
    while cursor.left > 0:
        position = _find_parts(cursor)
        if position < 0:
            raise ValueError(ERRORS[position])
        if cursor.offset >= cursor.next_offset:
            return True
        cursor.position = cursor.record_end
        cursor.left -= 1
    if cursor.position != cursor.end:
        raise ValueError("bytes are left over after the last record")
    return False


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _find_parts(cursor: BatchCursor) -> cython.Py_ssize_t:
    """Note the parts of the record at the cursor's position; below 0 where they are wrong. Key, value and
    headers are left out of a record that is passed over."""
    data: cython.pointer[cython.const[cython.uchar]] = cursor.data
    position: cython.Py_ssize_t
    length: cython.Py_ssize_t
    end: cython.Py_ssize_t
    delta: cython.longlong
    length, position = _length(data, cursor.position, cursor.end, 6)
    if position < 0:
        return position
    end = position + length
    cursor.record_end = end
    delta, position = _varint(data, position + 1, end, 64)
    if position < 0:
        return position
    cursor.timestamp = cursor.base_timestamp
    if cursor.timestamp_type == 0:
        if _overflows(cursor.base_timestamp, delta):
            return OUT_OF_RANGE
        cursor.timestamp += delta
    delta, position = _varint(data, position, end, 32)
    if position < 0:
        return position
    # One below the highest, so that the offset after it is one as well.
    if _overflows(cursor.base_offset, delta) or cursor.base_offset + delta == LONG_MAX:
        return OUT_OF_RANGE
    cursor.offset = cursor.base_offset + delta
    if cursor.offset < cursor.next_offset:
        return position
    cursor.key_length, position = _length(data, position, end, -1)
    cursor.key_start = position
    if cursor.key_length > 0:
        position += cursor.key_length
    cursor.value_length, position = _length(data, position, end, -1)
    cursor.value_start = position
    if cursor.value_length > 0:
        position += cursor.value_length
    cursor.headers_start = position
    return position


@cython.cfunc
@cython.inline
def _headers(
    data: cython.pointer[cython.const[cython.uchar]], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple:
    """The headers that lie between `position` and `end`, which they must reach exactly."""
    if position + 1 == end and data[position] == 0:
        return NO_HEADERS
    return _some_headers(data, position, end)


@cython.cfunc
def _some_headers(
    data: cython.pointer[cython.const[cython.uchar]], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple:
    _: cython.Py_ssize_t
    count: cython.Py_ssize_t
    length: cython.Py_ssize_t
    found: list = []
    count, position = _length(data, position, end, 0)
    if position < 0:
        raise ValueError(ERRORS[position])
    for _ in range(count):
        length, position = _length(data, position, end, 0)
        if position < 0:
            raise ValueError(ERRORS[position])
        name: bytes = _cut(data, position, length)
        position += length
        length, position = _length(data, position, end, -1)
        if position < 0:
            raise ValueError(ERRORS[position])
        found.append((name.decode("utf-8", "surrogateescape"), _cut(data, position, length)))
        if length > 0:
            position += length
    if position != end:
        raise ValueError("bytes are left over in a record")
    return tuple(found)


def decode_records(data: bytes, position: int, count: int, base_timestamp: int, base_offset: int) -> list:
    """Rows of (key, value, headers, timestamp, offset): the `count` records from `position` to the end of
    `data`, which they must reach exactly."""
    cursor: BatchCursor = BatchCursor(("", 0, None, None))
    out: list = []
    cursor.open(data, (position, len(data)), count, (base_offset, base_timestamp, None, -1), -LONG_MAX)
    cursor.take(out, count + 1)
    return [
        (record.key, record.value, list(record.headers), record.timestamp, record.offset) for record in out
    ]
