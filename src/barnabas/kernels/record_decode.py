"""Records of a batch (magic 2): as ConsumerRecord objects for consumers, as rows for all others.

A header is (name, value or None). Names are text; bytes that are not UTF-8 are kept by surrogateescape, so
that writing them gives the same bytes.

A cursor reads one decompressed batch after the other, each in as many calls as the caller likes: between two
calls its position is before the next record. Malformed bytes raise ValueError, and nothing is read beyond
their end. An exception of a deserializer is passed on, with the cursor still before that record."""

from types import GenericAlias

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.shared import (
        OpenBatch,
        Record,
        RecordHeader,
        read_header,
        read_headers,
        read_record,
        sum_overflows,
    )
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
else:
    from barnabas.kernels.shared import (
        OpenBatch,
        Record,
        RecordHeader,
        read_header,
        read_headers,
        read_record,
        sum_overflows,
    )

from barnabas.kernels.shared import RECORD_ERRORS

Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])

LONG_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
NO_HEADERS: tuple = ()


# Not tracked by the garbage collector: records are many, and nothing in a record refers back to it.
# Can be pickled: users send records to other processes.
@cython.auto_pickle(True)
@cython.no_gc
@cython.freelist(512)
@cython.cclass
class ConsumerRecord:
    """A record that was read. Key and value are results of the deserializers, or bytes without one."""

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

    @classmethod
    def __class_getitem__(cls, types: object) -> object:
        """So that ConsumerRecord[K, V] can be written in programs, as it is in the types."""
        return GenericAlias(cls, types)

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        key: object = None,
        value: object = None,
        **fields: object,
    ) -> None:
        """For interceptors and tests; `fields` are the other attributes by name."""
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.key = key
        self.value = value
        self.headers = tuple(fields.pop("headers", ()))
        self.timestamp = fields.pop("timestamp", -1)
        self.timestamp_type = fields.pop("timestamp_type", 0)
        self.leader_epoch = fields.pop("leader_epoch", -1)
        self.serialized_key_size = fields.pop("serialized_key_size", -1)
        self.serialized_value_size = fields.pop("serialized_value_size", -1)
        if fields:
            raise TypeError(f"a record has no attribute {', '.join(fields)}")

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )


@cython.cfunc
@cython.inline
def _cut(data: Input, start: cython.Py_ssize_t, length: cython.Py_ssize_t) -> object:
    """A copy of these bytes; None if the length is negative."""
    if length < 0:
        return None
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, data + start), length)
    return bytes(data[start : start + length])


@cython.cclass
class BatchCursor:
    """Reads the records of a batch, and then of the next.

    Deserializers are called with topic and bytes; without one, keys or values stay bytes."""

    topic: object
    key_deserializer: object
    value_deserializer: object
    partition: cython.int
    owner: object
    view: cython.const[cython.uchar][::1]
    data: Input
    position = cython.declare(cython.Py_ssize_t, visibility="readonly")
    end: cython.Py_ssize_t
    left = cython.declare(cython.Py_ssize_t, visibility="readonly")
    next_offset = cython.declare(cython.longlong, visibility="readonly")
    base_offset: cython.longlong
    base_timestamp: cython.longlong
    timestamp_type: cython.int
    leader_epoch: cython.int
    parts: Record

    def __init__(
        self, topic: str, partition: int, key_deserializer: object = None, value_deserializer: object = None
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.key_deserializer = key_deserializer
        self.value_deserializer = value_deserializer
        self.owner = None
        self.position = self.end = self.left = 0
        self.next_offset = 0
        self.parts = Record()

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def open(self, batch: OpenBatch, first_offset: cython.longlong) -> None:
        """Continue with this batch; records below `first_offset` are skipped."""
        if batch.data is not self.owner:
            # Consecutive batches are often in the same memory.
            self.view = batch.data if cython.compiled else memoryview(batch.data)
            self.owner = batch.data
        if cython.compiled:
            self.data = cython.address(self.view[0])
        else:
            self.data = self.view
        self.position = batch.position
        self.end = batch.end
        self.left = batch.left
        self.base_offset = batch.base_offset
        self.timestamp_type = 0 if batch.append_time is None else 1
        self.base_timestamp = batch.base_timestamp if batch.append_time is None else batch.append_time
        self.leader_epoch = batch.leader_epoch
        self.next_offset = first_offset

    def take(self, out: list, room: cython.Py_ssize_t) -> None:
        """Append the records that are left to `out`, at most `room`."""
        record: ConsumerRecord
        parts: Record = self.parts
        key_deserializer = self.key_deserializer
        value_deserializer = self.value_deserializer
        while room > 0 and _find_record(self):
            record = ConsumerRecord.__new__(ConsumerRecord)
            record.topic = self.topic
            record.partition = self.partition
            record.offset = self.base_offset + parts.offset_delta
            record.timestamp = self.base_timestamp
            if self.timestamp_type == 0:
                record.timestamp += parts.timestamp_delta
            record.timestamp_type = self.timestamp_type
            record.leader_epoch = self.leader_epoch
            record.serialized_key_size = cython.cast(cython.int, parts.key_length)
            record.serialized_value_size = cython.cast(cython.int, parts.value_length)
            record.headers = _headers(self.data, parts) if parts.header_count > 0 else NO_HEADERS
            record.key = _cut(self.data, parts.key_start, parts.key_length)
            record.value = _cut(self.data, parts.value_start, parts.value_length)
            if key_deserializer is not None:
                record.key = key_deserializer(self.topic, record.key)
            if value_deserializer is not None:
                record.value = value_deserializer(self.topic, record.value)
            out.append(record)
            self.position = parts.end
            self.left -= 1
            self.next_offset = record.offset + 1
            room -= 1


@cython.cfunc
@cython.exceptval(check=True)
def _find_record(cursor: BatchCursor) -> cython.bint:
    """Read where the parts of the next record are; false if there is none."""
    parts: Record = cursor.parts
    error: cython.int
    while cursor.left > 0:
        error = read_record(cursor.data, cursor.position, cursor.end, parts)
        if error == 0:
            error = read_headers(cursor.data, parts)
        if error != 0:
            raise ValueError(RECORD_ERRORS[error])
        if _is_out_of_range(cursor, parts):
            raise ValueError("the offset or timestamp of a record is out of range")
        if cursor.base_offset + parts.offset_delta >= cursor.next_offset:
            return True
        cursor.position = parts.end
        cursor.left -= 1
    if cursor.position != cursor.end:
        raise ValueError("bytes are left over after the last record")
    return False


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_out_of_range(cursor: BatchCursor, parts: Record) -> cython.bint:
    if cursor.timestamp_type == 0 and sum_overflows(cursor.base_timestamp, parts.timestamp_delta):
        return True
    # The offset after this one must be in range, too.
    return (
        sum_overflows(cursor.base_offset, parts.offset_delta)
        or cursor.base_offset + parts.offset_delta == LONG_MAX
    )


@cython.cfunc
def _headers(data: Input, parts: Record) -> tuple:
    """The headers as (name, value); read_headers has checked them."""
    position: cython.Py_ssize_t = parts.headers_start
    _: cython.Py_ssize_t
    header: RecordHeader = RecordHeader()
    headers: list = []
    for _ in range(parts.header_count):
        position = read_header(data, position, parts.end, header)
        name: bytes = _cut(data, header.name_start, header.name_length)
        value: object = _cut(data, header.value_start, header.value_length)
        headers.append((name.decode("utf-8", "surrogateescape"), value))
    return tuple(headers)


def decode_records(data: bytes, position: int, count: int, base_timestamp: int, base_offset: int) -> list:
    """Rows of (key, value, headers, timestamp, offset): the `count` records that fill `data` from `position`
    to its end."""
    cursor: BatchCursor = BatchCursor("", 0)
    out: list = []
    cursor.open(OpenBatch(data, position, len(data), count, base_offset, base_timestamp), -LONG_MAX)
    cursor.take(out, count + 1)
    return [
        (record.key, record.value, list(record.headers), record.timestamp, record.offset) for record in out
    ]
