"""Records written as a batch (magic 2) holds them: all at once, or appended one by one to a growing batch,
with the light futures that a producer gives for them.

append() and close() each run as one step under the interpreter's lock: a thread that appends and one that
closes need no lock of their own, and a record is either in the batch before it is closed or refused."""

import cython

HEADER_SIZE = 61


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint_size(value: cython.longlong) -> cython.Py_ssize_t:
    raw: cython.ulonglong
    size: cython.Py_ssize_t = 1
    if value < 0:
        raw = cython.cast(cython.ulonglong, -1 - value) * 2 + 1
    else:
        raw = cython.cast(cython.ulonglong, value) * 2
    while raw >= 0x80:
        raw >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def _put_varint(out: bytearray, value: cython.longlong) -> cython.int:
    raw: cython.ulonglong
    if value < 0:
        raw = cython.cast(cython.ulonglong, -1 - value) * 2 + 1
    else:
        raw = cython.cast(cython.ulonglong, value) * 2
    while raw >= 0x80:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)
    return 0


@cython.cfunc
@cython.inline
def _put_bytes(out: bytearray, value: object) -> cython.void:
    if value is None:
        out.append(1)
    else:
        _put_varint(out, len(value))
        out += value


@cython.cfunc
def _encoded_headers(headers: object) -> bytearray:
    """The number of the headers and the headers, as they end a record."""
    out: bytearray = bytearray()
    _put_varint(out, len(headers))
    for name, value in headers:
        _put_bytes(out, name.encode("utf-8", "surrogateescape"))
        _put_bytes(out, value)
    return out


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
        body += _encoded_headers(headers)
        _put_varint(out, len(body))
        out += body
    return out


@cython.cclass
class RecordFuture:
    """A record on its way. It shares the outcome of its batch, so making one costs next to nothing."""

    batch = cython.declare(object, visibility="readonly")
    index = cython.declare(cython.Py_ssize_t, visibility="readonly")
    timestamp = cython.declare(cython.longlong, visibility="readonly")
    key_size = cython.declare(cython.Py_ssize_t, visibility="readonly")
    value_size = cython.declare(cython.Py_ssize_t, visibility="readonly")

    def result(self, timeout: object = None) -> object:
        """Where the record was written; waits for it, at most `timeout` seconds. Raises what went wrong."""
        return self.batch.result_of(self, timeout)

    def exception(self, timeout: object = None) -> object:
        """What went wrong, or None; waits as result() does."""
        return self.batch.exception_of(self, timeout)

    def done(self) -> object:
        return self.batch.is_done_at(self.index)

    def add_callback(self, callback: object) -> object:
        """callback(metadata or None, error or None), called once; at once when the record is done."""
        self.batch.call_when_done(self, callback)
        return self


@cython.cclass
class RecordBuffer:
    """The bytes of one open batch: room for its header, then records as they are appended.

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
        """Add a record; None, and nothing added, when the batch is closed or the record does not fit."""
        out: bytearray = self.data
        ends: bytearray | None = _encoded_headers(headers) if headers else None
        key_size: cython.Py_ssize_t = -1 if key is None else len(key)
        value_size: cython.Py_ssize_t = -1 if value is None else len(value)
        base: cython.longlong = timestamp if self.count == 0 else self.base_timestamp
        size: cython.Py_ssize_t = 1 + _varint_size(timestamp - base) + _varint_size(self.count)
        size += _varint_size(key_size) + _varint_size(value_size) + (1 if ends is None else len(ends))
        size += (0 if key is None else key_size) + (0 if value is None else value_size)
        if not self.is_open:
            return None
        if self.count > 0 and len(out) + _varint_size(size) + size > self.capacity:
            return None
        _put_varint(out, size)
        out.append(0)
        _put_varint(out, timestamp - base)
        _put_varint(out, self.count)
        _put_varint(out, key_size)
        if key is not None:
            out += key
        _put_varint(out, value_size)
        if value is not None:
            out += value
        if ends is None:
            out.append(0)
        else:
            out += ends
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
        """Hold these records, which were encoded elsewhere behind room for a header, and take no more."""
        self.data = data
        self.count = count
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.is_open = False

    def close(self) -> bool:
        """Take no more records; False when it was closed before."""
        was_open: cython.bint = self.is_open
        self.is_open = False
        return was_open

    def forget_data(self) -> None:
        """Give the bytes back; the futures stay."""
        self.is_open = False
        self.data = bytearray()


@cython.boundscheck(False)
@cython.wraparound(False)
def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 hash by which Kafka's clients spread keys, without its sign bit."""
    length: cython.Py_ssize_t = len(data)
    position: cython.Py_ssize_t = 0
    mixer: cython.ulonglong = 0x5BD1E995
    mask: cython.ulonglong = 0xFFFFFFFF
    part: cython.ulonglong
    found: cython.ulonglong = (0x9747B28C ^ cython.cast(cython.ulonglong, length)) & mask
    while length - position >= 4:
        part = cython.cast(cython.uchar, data[position])
        part |= cython.cast(cython.ulonglong, cython.cast(cython.uchar, data[position + 1])) << 8
        part |= cython.cast(cython.ulonglong, cython.cast(cython.uchar, data[position + 2])) << 16
        part |= cython.cast(cython.ulonglong, cython.cast(cython.uchar, data[position + 3])) << 24
        part = (part * mixer) & mask
        part ^= part >> 24
        part = (part * mixer) & mask
        found = ((found * mixer) & mask) ^ part
        position += 4
    if length - position >= 3:
        found ^= cython.cast(cython.ulonglong, cython.cast(cython.uchar, data[position + 2])) << 16
    if length - position >= 2:
        found ^= cython.cast(cython.ulonglong, cython.cast(cython.uchar, data[position + 1])) << 8
    if length - position >= 1:
        found ^= cython.cast(cython.uchar, data[position])
        found = (found * mixer) & mask
    found ^= found >> 13
    found = (found * mixer) & mask
    found ^= found >> 15
    return found & 0x7FFFFFFF
