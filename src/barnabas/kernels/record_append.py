"""Encodes the records of a batch (magic 2): all at once, or one by one into a growing batch, with the futures
that a producer returns for them. `PlainSender` is the way that most records of a producer take.

append() and close() each run as one step under the lock of the interpreter: a thread that appends and a
thread that closes need no lock of their own, and a record is either in the batch before it is closed or
refused. So nothing between the first and the last change of a batch may run Python code."""

from types import GenericAlias

import cython
from crc32c import crc32c

if cython.compiled:
    from cython.cimports.barnabas.kernels.hashing import hash_of_key
    from cython.cimports.barnabas.kernels.shared import (
        ATTRIBUTES_AT,
        CRC_AT,
        HEADER_SIZE,
        LENGTH_OVERHEAD,
        MAGIC,
        append_varint,
        varint_size,
        write_number,
        write_varint,
    )
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.cpython.ref import Py_REFCNT
    from cython.cimports.libc.string import memcpy
    from cython.cimports.posix.time import CLOCK_REALTIME, clock_gettime, timespec
else:
    from time import time_ns

    from barnabas.kernels.hashing import hash_of_key
    from barnabas.kernels.shared import (
        ATTRIBUTES_AT,
        CRC_AT,
        HEADER_SIZE,
        LENGTH_OVERHEAD,
        MAGIC,
        append_varint,
        varint_size,
        write_number,
        write_varint,
    )

Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])
Output = cython.typedef(cython.pointer[cython.uchar])

# A new batch gets this much memory; it is doubled when it is full.
FIRST_BYTES_MAX = cython.declare(cython.Py_ssize_t, 16 * 1024)
# The memory of batches that are done, for the next ones: new memory costs more than filling it. At most 8 MB,
# what a full buffer.memory of the default size frees before threads that wait for it go on.
SPARE_MAX = 512
_spare = cython.declare(list, [])


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


def write_header(
    batch: bytearray,
    attributes: cython.longlong,
    count: cython.longlong,
    base_timestamp: cython.longlong,
    max_timestamp: cython.longlong,
    producer_id: cython.longlong,
    producer_epoch: cython.longlong,
    base_sequence: cython.longlong,
) -> None:
    """Write the header of a batch that begins with room for it, for a broker that has not seen the batch yet:
    the base offset is 0, the leader epoch unknown."""
    size: cython.Py_ssize_t = len(batch)
    if size < HEADER_SIZE:
        raise ValueError(f"a batch has at least {HEADER_SIZE} bytes, got {size}")
    out: Output = _memory_of(batch, size)
    position: cython.Py_ssize_t = write_number(out, 0, 8, 0)
    position = write_number(out, position, 4, size - LENGTH_OVERHEAD)
    position = write_number(out, position, 4, -1)
    write_number(out, position, 1, MAGIC)
    position = write_number(out, ATTRIBUTES_AT, 2, attributes)
    position = write_number(out, position, 4, count - 1)
    position = write_number(out, position, 8, base_timestamp)
    position = write_number(out, position, 8, max_timestamp)
    position = write_number(out, position, 8, producer_id)
    position = write_number(out, position, 2, producer_epoch)
    position = write_number(out, position, 4, base_sequence)
    write_number(out, position, 4, count)
    view: object = memoryview(batch)
    crc: cython.longlong = crc32c(view[ATTRIBUTES_AT:])
    view.release()
    write_number(_memory_of(batch, size), CRC_AT, 4, crc)


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


@cython.cfunc
@cython.exceptval(-1, check=False)
def _now_ms() -> cython.longlong:
    if cython.compiled:
        now = cython.declare(timespec)
        clock_gettime(CLOCK_REALTIME, cython.address(now))
        return now.tv_sec * 1000 + now.tv_nsec // 1_000_000
    return time_ns() // 1_000_000


@cython.cfunc
@cython.inline
@cython.exceptval(check=True)
def _memory_of(out: bytearray, size: cython.Py_ssize_t) -> Output:
    """The bytes of `out`, at least `size` of them."""
    length: cython.Py_ssize_t = len(out)
    if length < size:
        length = max(size, 2 * length)
        if cython.compiled:
            PyByteArray_Resize(out, length)
        else:
            out.extend(bytes(length - len(out)))
    if cython.compiled:
        return cython.cast(Output, PyByteArray_AS_STRING(out))
    return out


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _copy(
    out: Output, position: cython.Py_ssize_t, data: object, size: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Write bytes or a bytearray. Returns the position after it."""
    if cython.compiled:
        if isinstance(data, bytearray):
            memcpy(out + position, PyByteArray_AS_STRING(data), size)
        else:
            memcpy(out + position, cython.cast(cython.p_const_char, cython.cast(bytes, data)), size)
    else:
        out[position : position + size] = data
    return position + size


@cython.cclass
class RecordBuffer:
    """The bytes of one open batch: room for its header, then the records.

    The first record always fits: a record larger than the capacity gets a batch of its own."""

    size = cython.declare(cython.Py_ssize_t, visibility="readonly")
    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    base_timestamp = cython.declare(cython.longlong, visibility="readonly")
    max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    is_open = cython.declare(cython.bint, visibility="readonly")
    capacity: cython.Py_ssize_t
    memory: bytearray

    def __init__(self, capacity: cython.Py_ssize_t) -> None:
        if capacity >= FIRST_BYTES_MAX and _spare:
            self.memory = _spare.pop()
            self.memory[:HEADER_SIZE] = bytes(HEADER_SIZE)
        else:
            self.memory = bytearray(HEADER_SIZE)
        self.size = HEADER_SIZE
        self.count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.is_open = True
        self.capacity = capacity

    @property
    def data(self) -> bytearray:
        """The batch so far."""
        if len(self.memory) > self.size:
            del self.memory[self.size :]
        return self.memory

    def append(
        self, timestamp: cython.longlong, key: bytes | None, value: bytes | None, headers: object = None
    ) -> RecordFuture | None:
        """Add a record; returns None and adds nothing if the batch is closed or the record does not fit."""
        encoded_headers: bytearray | None = _encoded_headers(headers) if headers else None
        return self._append(timestamp, key, value, encoded_headers)

    @cython.cfunc
    def _append(
        self, timestamp: cython.longlong, key: bytes | None, value: bytes | None, headers: bytearray | None
    ) -> RecordFuture | None:
        key_size: cython.Py_ssize_t = -1 if key is None else len(key)
        value_size: cython.Py_ssize_t = -1 if value is None else len(value)
        headers_size: cython.Py_ssize_t = 1 if headers is None else len(headers)
        # Made first: making an object may run the garbage collector, and so other threads.
        future: RecordFuture = RecordFuture()
        base: cython.longlong = timestamp if self.count == 0 else self.base_timestamp
        size: cython.Py_ssize_t = 1 + varint_size(timestamp - base) + varint_size(self.count)
        size += varint_size(key_size) + varint_size(value_size) + headers_size
        size += max(key_size, 0) + max(value_size, 0)
        end: cython.Py_ssize_t = self.size + varint_size(size) + size
        if not self.is_open or (self.count > 0 and end > self.capacity):
            return None
        # A full batch of the usual size needs one allocation.
        room: cython.Py_ssize_t = min(self.capacity, FIRST_BYTES_MAX) if self.count == 0 else 0
        out: Output = _memory_of(self.memory, max(end, room))
        position: cython.Py_ssize_t = write_varint(out, self.size, size)
        out[position] = 0
        position = write_varint(out, position + 1, timestamp - base)
        position = write_varint(out, position, self.count)
        position = write_varint(out, position, key_size)
        if key is not None:
            position = _copy(out, position, key, key_size)
        position = write_varint(out, position, value_size)
        if value is not None:
            position = _copy(out, position, value, value_size)
        if headers is None:
            out[position] = 0
        else:
            _copy(out, position, headers, headers_size)
        self.size = end
        self.base_timestamp = base
        if self.count == 0 or timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        future.batch = self
        future.index = self.count
        future.timestamp = timestamp
        future.key_size = key_size
        future.value_size = value_size
        self.count += 1
        return future

    def adopt(self, data: bytearray, count: int, base_timestamp: int, max_timestamp: int) -> None:
        """Close the batch with these records, which were encoded elsewhere after room for a header."""
        self.memory = data
        self.size = len(data)
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
        memory: bytearray = self.memory
        self.is_open = False
        self.memory = bytearray()
        self.size = 0
        size: cython.Py_ssize_t = len(memory)
        is_usual: cython.bint = FIRST_BYTES_MAX // 2 < size <= FIRST_BYTES_MAX
        # Only memory that nobody else holds.
        if cython.compiled and is_usual and len(_spare) < SPARE_MAX and Py_REFCNT(memory) == 1:
            _spare.append(memory)


@cython.cclass
class OpenBatches:
    """The open batches of a topic: by partition, and the one for records without a key."""

    open = cython.declare(list, visibility="public")
    sticky_open = cython.declare(object, visibility="public")

    def __init__(self) -> None:
        self.open = []
        self.sticky_open = None


@cython.cclass
class PlainSender:
    """Appends a record without options directly to an open batch with space, if the producer allows it
    (`_is_plain`). All other records go to `_send`, which does everything and gives the errors."""

    _topics = cython.declare(dict, visibility="public")
    _is_plain = cython.declare(cython.bint, visibility="public")

    def send(self, topic: object, value: object = None, key: object = None, **options: object) -> object:
        """Send a record; the future's result() is its RecordMetadata.

        Options: partition, timestamp (ms), headers, on_delivery(metadata or None, error or None), which is
        called on the I/O thread. Key and value are bytes or None unless there are serializers."""
        future: RecordFuture | None
        if not options:
            if self._is_plain:
                future = self._append_plain(topic, value, key)
                if future is not None:
                    return future
            return self._send(topic, value, key, options, None)
        on_delivery: object = options.pop("on_delivery", None)
        if self._is_plain and not options:
            future = self._append_plain(topic, value, key)
            if future is not None:
                return future if on_delivery is None else future.add_callback(on_delivery)
        return self._send(topic, value, key, options, on_delivery)

    @cython.cfunc
    def _append_plain(self, topic: object, value: object, key: object) -> RecordFuture | None:
        if not (value is None or type(value) is bytes) or not (key is None or type(key) is bytes):
            return None
        found: object = self._topics.get(topic)
        if found is None:
            return None
        batches: OpenBatches = found
        batch: object = batches.sticky_open
        if key is not None:
            hashed: cython.ulonglong
            if cython.compiled:
                chars: Input = cython.cast(Input, cython.cast(cython.p_const_char, cython.cast(bytes, key)))
                hashed = hash_of_key(chars, 0, len(cython.cast(bytes, key)))
            else:
                hashed = hash_of_key(key, 0, len(key))
            batch = batches.open[hashed % len(batches.open)]
        if batch is None:
            return None
        buffer: RecordBuffer = batch
        return buffer._append(_now_ms(), key, value, None)
