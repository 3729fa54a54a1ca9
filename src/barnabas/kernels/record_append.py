"""Encodes the records of a batch (magic 2): all at once, or one by one into a growing batch, with the futures
that a producer returns for them.

append() and close() each run as one step under the lock of the interpreter: a thread that appends and a
thread that closes need no lock of their own, and a record is either in the batch before it is closed or
refused."""

from types import GenericAlias

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.shared import HEADER_SIZE, append_varint, varint_size
else:
    from barnabas.kernels.shared import HEADER_SIZE, append_varint, varint_size


@cython.cfunc
@cython.inline
def _append_bytes(out: bytearray, value: object) -> cython.void:
    if value is None:
        out.append(1)
    else:
        append_varint(out, len(value))
        out += value


@cython.cfunc
def _encoded_headers(headers: object) -> bytearray:
    """The end of a record: the number of headers, then the headers."""
    out: bytearray = bytearray()
    append_varint(out, len(headers))
    for name, value in headers:
        _append_bytes(out, name.encode("utf-8", "surrogateescape"))
        _append_bytes(out, value)
    return out


def encode_records(
    records: object, base_timestamp: cython.longlong, offset_deltas: list | None = None
) -> bytearray:
    """The records of a batch, without its header. Each is given as (timestamp, key, value, headers).

    Their offset deltas are 0, 1, 2, ... unless others are given."""
    out: bytearray = bytearray()
    body: bytearray = bytearray()
    index: cython.Py_ssize_t
    for index, (timestamp, key, value, headers) in enumerate(records):
        body.clear()
        body.append(0)
        append_varint(body, timestamp - base_timestamp)
        append_varint(body, index if offset_deltas is None else offset_deltas[index])
        _append_bytes(body, key)
        _append_bytes(body, value)
        body += _encoded_headers(headers)
        append_varint(out, len(body))
        out += body
    return out


@cython.cclass
class RecordFuture:
    """The result of one record. It refers to the result of its batch, so making one costs very little."""

    batch = cython.declare(object, visibility="readonly")
    index = cython.declare(cython.Py_ssize_t, visibility="readonly")
    timestamp = cython.declare(cython.longlong, visibility="readonly")
    key_size = cython.declare(cython.Py_ssize_t, visibility="readonly")
    value_size = cython.declare(cython.Py_ssize_t, visibility="readonly")

    @classmethod
    def __class_getitem__(cls, types: object) -> object:
        """So that RecordFuture[RecordMetadata] can be written in programs, as it is in the types."""
        return GenericAlias(cls, types)

    def result(self, timeout: object = None) -> object:
        """Wait at most `timeout` seconds; returns where the record was written, or raises its error."""
        return self.batch.result_of(self, timeout)

    def exception(self, timeout: object = None) -> object:
        """Wait like result(); returns the error, or None."""
        return self.batch.exception_of(self, timeout)

    def __getattr__(self, name: str) -> object:
        raise self.batch.no_attribute(name)

    def done(self) -> object:
        return self.batch.is_done_at(self.index)

    def add_callback(self, callback: object) -> object:
        """Call callback(metadata or None, error or None) once, immediately if the record is done."""
        self.batch.call_when_done(self, callback)
        return self


@cython.cclass
class RecordBuffer:
    """The bytes of one open batch: room for its header, then the records.

    The first record always fits: a record larger than the capacity gets a batch of its own."""

    data = cython.declare(bytearray, visibility="readonly")
    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    base_timestamp = cython.declare(cython.longlong, visibility="readonly")
    max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    is_open = cython.declare(cython.bint, visibility="readonly")
    capacity: cython.Py_ssize_t

    def __init__(self, capacity: cython.Py_ssize_t) -> None:
        self.data = bytearray(HEADER_SIZE)
        self.count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.is_open = True
        self.capacity = capacity

    def append(
        self, timestamp: cython.longlong, key: bytes | None, value: bytes | None, headers: object = None
    ) -> RecordFuture | None:
        """Add a record; returns None and adds nothing if the batch is closed or the record does not fit."""
        out: bytearray = self.data
        encoded_headers: bytearray | None = _encoded_headers(headers) if headers else None
        key_size: cython.Py_ssize_t = -1 if key is None else len(key)
        value_size: cython.Py_ssize_t = -1 if value is None else len(value)
        base: cython.longlong = timestamp if self.count == 0 else self.base_timestamp
        size: cython.Py_ssize_t = 1 + varint_size(timestamp - base) + varint_size(self.count)
        size += (
            varint_size(key_size)
            + varint_size(value_size)
            + (1 if encoded_headers is None else len(encoded_headers))
        )
        size += (0 if key is None else key_size) + (0 if value is None else value_size)
        if not self.is_open:
            return None
        if self.count > 0 and len(out) + varint_size(size) + size > self.capacity:
            return None
        append_varint(out, size)
        out.append(0)
        append_varint(out, timestamp - base)
        append_varint(out, self.count)
        append_varint(out, key_size)
        if key is not None:
            out += key
        append_varint(out, value_size)
        if value is not None:
            out += value
        if encoded_headers is None:
            out.append(0)
        else:
            out += encoded_headers
        self.base_timestamp = base
        if self.count == 0 or timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        future: RecordFuture = RecordFuture()
        future.batch = self
        future.index = self.count
        future.timestamp = timestamp
        future.key_size = key_size
        future.value_size = value_size
        self.count += 1
        return future

    def adopt(self, data: bytearray, count: int, base_timestamp: int, max_timestamp: int) -> None:
        """Close the batch with these records, which were encoded elsewhere after room for a header."""
        self.data = data
        self.count = count
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.is_open = False

    def close(self) -> bool:
        """Refuse further records; returns False if the batch was closed before."""
        was_open: cython.bint = self.is_open
        self.is_open = False
        return was_open

    def forget_data(self) -> None:
        """Release the bytes; the futures stay valid."""
        self.is_open = False
        self.data = bytearray()
