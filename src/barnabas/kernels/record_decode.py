"""Records of a batch (magic 2) for consumers, as ConsumerRecord objects, and as rows for everybody else.

A header is (name, value or None); names are text, with bytes that are not UTF-8 kept by surrogateescape, so
that what was read is written back unchanged.

A cursor reads one batch, decompressed already, in as many calls as its reader likes: between two calls it
stands before the next record. Malformed bytes raise ValueError, and nothing is read beyond their end. What a
deserializer raises goes through, with the cursor still before the record that it was raised for."""

import cython

LONG_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
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
@cython.inline
@cython.exceptval(check=True)
def _sum(base: cython.longlong, delta: cython.longlong) -> cython.longlong:
    if delta > 0:
        if base > LONG_MAX - delta:
            raise ValueError("an offset or timestamp of a record is out of range")
    elif base < -LONG_MAX - 1 - delta:
        raise ValueError("an offset or timestamp of a record is out of range")
    return base + delta


@cython.cfunc
@cython.inline
def _cut(data: bytes, start: cython.Py_ssize_t, length: cython.Py_ssize_t) -> object:
    """A copy of the bytes there; None for a length below 0."""
    if length < 0:
        return None
    return data[start : start + length]


@cython.cclass
class BatchCursor:
    """The records of one batch, from `first_offset` on; earlier ones are passed over.

    `source` is (topic, partition, key deserializer, value deserializer): callables of topic and bytes, or
    None to keep the bytes. `facts` is (base offset, base timestamp, append time or None, leader epoch)."""

    data: bytes
    topic: object
    key_deserializer: object
    value_deserializer: object
    partition: cython.int
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

    def __init__(
        self, data: bytes, position: int, count: int, source: tuple, facts: tuple, first_offset: int
    ) -> None:
        base_offset, base_timestamp, append_time, leader_epoch = facts
        if position < 0 or count < 0:
            raise ValueError("a position or count is negative")
        self.data = data
        self.position = position
        self.end = len(data)
        self.left = count
        self.topic, self.partition, self.key_deserializer, self.value_deserializer = source
        self.base_offset = base_offset
        self.timestamp_type = 0 if append_time is None else 1
        self.base_timestamp = base_timestamp if append_time is None else append_time
        self.leader_epoch = leader_epoch
        self.next_offset = first_offset

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
            key = _cut(self.data, self.key_start, self.key_length)
            value = _cut(self.data, self.value_start, self.value_length)
            record.headers = _headers(self.data, self.headers_start, self.record_end)
            record.key = key if key_deserializer is None else key_deserializer(self.topic, key)
            record.value = value if value_deserializer is None else value_deserializer(self.topic, value)
            out.append(record)
            _pass(self)
            room -= 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=True)
def _pass(cursor: BatchCursor) -> cython.int:
    cursor.position = cursor.record_end
    cursor.left -= 1
    cursor.next_offset = cursor.offset + 1
    return 0


@cython.cfunc
@cython.exceptval(check=True)
def _find(cursor: BatchCursor) -> cython.bint:
    """Read where the parts of the next record are; false when there is none."""
    data: bytes = cursor.data
    position: cython.Py_ssize_t
    length: cython.Py_ssize_t
    end: cython.Py_ssize_t
    delta: cython.longlong
    while cursor.left > 0:
        length, position = _length(data, cursor.position, cursor.end, 6)
        end = position + length
        cursor.record_end = end
        delta, position = _varint(data, position + 1, end, 64)
        cursor.timestamp = cursor.base_timestamp
        if cursor.timestamp_type == 0:
            cursor.timestamp = _sum(cursor.base_timestamp, delta)
        delta, position = _varint(data, position, end, 32)
        cursor.offset = _sum(cursor.base_offset, delta)
        if cursor.offset >= cursor.next_offset:
            cursor.key_length, position = _length(data, position, end, -1)
            cursor.key_start = position
            if cursor.key_length > 0:
                position += cursor.key_length
            cursor.value_length, position = _length(data, position, end, -1)
            cursor.value_start = position
            if cursor.value_length > 0:
                position += cursor.value_length
            cursor.headers_start = position
            return True
        cursor.position = end
        cursor.left -= 1
    if cursor.position != cursor.end:
        raise ValueError("bytes are left over after the last record")
    return False


@cython.cfunc
def _headers(data: bytes, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> tuple:
    """The headers that lie between `position` and `end`, which they must reach exactly."""
    _: cython.Py_ssize_t
    count: cython.Py_ssize_t
    length: cython.Py_ssize_t
    count, position = _length(data, position, end, 0)
    if count == 0 and position == end:
        return NO_HEADERS
    found: list = []
    for _ in range(count):
        length, position = _length(data, position, end, 0)
        name = data[position : position + length].decode("utf-8", "surrogateescape")
        position += length
        length, position = _length(data, position, end, -1)
        found.append((name, _cut(data, position, length)))
        if length > 0:
            position += length
    if position != end:
        raise ValueError("bytes are left over in a record")
    return tuple(found)


def decode_records(
    data: bytes, position: cython.Py_ssize_t, count: cython.Py_ssize_t, base_timestamp: int, base_offset: int
) -> list:
    """Rows of (key, value, headers, timestamp, offset): the `count` records from `position` to the end of
    `data`, which they must reach exactly."""
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
        headers = list(_headers(data, position, record_end))
        found.append((key, value, headers, base_timestamp + timestamp_delta, base_offset + offset_delta))
        position = record_end
    if position != end:
        raise ValueError("bytes are left over after the last record")
    return found
