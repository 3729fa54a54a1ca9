"""Records of a batch (magic 2) for consumers: as ConsumerRecord objects, or as the buffers of Arrow columns.

A cursor reads one batch, decompressed already, in as many calls as its reader likes: between two calls it
stands before the next record. Malformed bytes raise ValueError, and nothing is read beyond their end. What a
deserializer raises goes through, with the cursor still before the record that it was raised for."""

from array import array

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
class Columns:
    """Rows of records as the growing buffers of Arrow columns; strings and lists by their end offsets.

    `topics` numbers the source of a row; the flags of keys and values are one byte per row, 0 for null."""

    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    topics = cython.declare(object, visibility="readonly")
    partitions = cython.declare(object, visibility="readonly")
    offsets = cython.declare(object, visibility="readonly")
    timestamps = cython.declare(object, visibility="readonly")
    key_ends = cython.declare(object, visibility="readonly")
    key_flags = cython.declare(bytearray, visibility="readonly")
    keys = cython.declare(bytearray, visibility="readonly")
    value_ends = cython.declare(object, visibility="readonly")
    value_flags = cython.declare(bytearray, visibility="readonly")
    values = cython.declare(bytearray, visibility="readonly")
    header_ends = cython.declare(object, visibility="readonly")
    header_name_ends = cython.declare(object, visibility="readonly")
    header_names = cython.declare(bytearray, visibility="readonly")
    header_value_ends = cython.declare(object, visibility="readonly")
    header_value_flags = cython.declare(bytearray, visibility="readonly")
    header_values = cython.declare(bytearray, visibility="readonly")

    def __init__(self) -> None:
        self.count = 0
        self.topics = array("i")
        self.partitions = array("i")
        self.offsets = array("q")
        self.timestamps = array("q")
        self.key_ends = array("i", (0,))
        self.value_ends = array("i", (0,))
        self.header_ends = array("i", (0,))
        self.header_name_ends = array("i", (0,))
        self.header_value_ends = array("i", (0,))
        self.key_flags = bytearray()
        self.value_flags = bytearray()
        self.header_value_flags = bytearray()
        self.keys = bytearray()
        self.values = bytearray()
        self.header_names = bytearray()
        self.header_values = bytearray()


def packed_flags(flags: bytearray) -> bytearray:
    """One bit per flag, lowest first: an Arrow validity bitmap."""
    packed: bytearray = bytearray((len(flags) + 7) // 8)
    index: cython.Py_ssize_t
    for index in range(len(flags)):
        if flags[index]:
            packed[index >> 3] = packed[index >> 3] | (1 << (index & 7))
    return packed


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
    position: cython.Py_ssize_t
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

    def take_columns(self, columns: Columns, topic_number: cython.int, room: cython.Py_ssize_t) -> None:
        """Append as many rows as there are records, at most `room`, without an object for any."""
        # Bound once: a lookup per row and column would cost more than the row.
        add_offset = columns.offsets.append
        add_timestamp = columns.timestamps.append
        add_key_end = columns.key_ends.append
        add_value_end = columns.value_ends.append
        before: cython.Py_ssize_t = columns.count
        try:
            while room > 0 and _find(self):
                _put_headers(columns, self.data, self.headers_start, self.record_end)
                add_offset(self.offset)
                add_timestamp(self.timestamp)
                if self.key_length > 0:
                    columns.keys += _cut(self.data, self.key_start, self.key_length)
                columns.key_flags.append(self.key_length >= 0)
                add_key_end(len(columns.keys))
                if self.value_length > 0:
                    columns.values += _cut(self.data, self.value_start, self.value_length)
                columns.value_flags.append(self.value_length >= 0)
                add_value_end(len(columns.values))
                columns.count += 1
                _pass(self)
                room -= 1
        finally:
            columns.topics.extend(array("i", (topic_number,)) * (columns.count - before))
            columns.partitions.extend(array("i", (self.partition,)) * (columns.count - before))


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


@cython.cfunc
@cython.exceptval(check=True)
def _put_headers(
    columns: Columns, data: bytes, position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.int:
    # All of them are read before the first is written: what is malformed must leave no half row behind.
    # Names that are not UTF-8 become it, since Arrow's strings are.
    headers: tuple = _headers(data, position, end)
    for name, value in headers:
        columns.header_names += name.encode("utf-8", "replace")
        columns.header_name_ends.append(len(columns.header_names))
        if value is not None:
            columns.header_values += value
        columns.header_value_flags.append(value is not None)
        columns.header_value_ends.append(len(columns.header_values))
    columns.header_ends.append(len(columns.header_value_flags))
    return 0
