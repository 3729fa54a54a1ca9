# cython: boundscheck=False, wraparound=False
"""Rows of Arrow columns as record batches (magic 2) by partition, with no Python object per row.

Columns come as the buffers that Arrow has: end offsets of 64 bits, bytes, validity bits. Every offset is
checked against the bytes it points into."""

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.hashing import hash_of_key
    from cython.cimports.barnabas.kernels.shared import uncleared, varint_size, write_varint
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.libc.string import memcpy, memset
else:
    from barnabas.kernels.hashing import hash_of_key
    from barnabas.kernels.shared import uncleared, varint_size, write_varint

Size = cython.typedef(cython.Py_ssize_t)
Long = cython.typedef(cython.longlong)
Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])
Ends = cython.typedef(cython.pointer[cython.const[cython.longlong]])
Output = cython.typedef(cython.pointer[cython.uchar])

HEADER_SIZE = cython.declare(cython.Py_ssize_t, 61)
# More than a record's five varints and its attributes can take.
RECORD_OVERHEAD = cython.declare(cython.Py_ssize_t, 40)


@cython.cclass
class BytesInput:
    """A column of bytes: row `i` is at place `first` + i of the buffers. No `bits` means no nulls."""

    ends_memory: cython.const[cython.longlong][::1]
    data_memory: cython.const[cython.uchar][::1]
    bits_memory: cython.const[cython.uchar][::1]
    ends: Ends
    data: Input
    bits: Input
    ends_count: Size
    data_size: Size
    bits_size: Size
    has_bits: cython.bint
    first: Size

    def __init__(self, first: Size, bits: object, ends: object, data: object) -> None:
        self.first = first
        self.has_bits = bits is not None
        self.bits_memory = b"" if bits is None else bits
        self.ends_memory = ends
        self.data_memory = data
        self.bits_size = len(self.bits_memory)
        self.ends_count = len(self.ends_memory)
        self.data_size = len(self.data_memory)
        if cython.compiled:
            self.bits = cython.address(self.bits_memory[0])
            self.ends = cython.address(self.ends_memory[0])
            self.data = cython.address(self.data_memory[0])
        else:
            self.bits, self.ends, self.data = self.bits_memory, self.ends_memory, self.data_memory


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _bounds(column: BytesInput, row: Size) -> tuple[Size, Size]:
    """(start, length) of a row; the length is -1 for null and -2 where the buffers do not hold it."""
    place: Size = column.first + row
    start: Long
    end: Long
    if place < 0 or place + 1 >= column.ends_count:
        return 0, -2
    if column.has_bits:
        if place >> 3 >= column.bits_size:
            return 0, -2
        if not column.bits[place >> 3] >> (place & 7) & 1:
            return 0, -1
    start = column.ends[place]
    end = column.ends[place + 1]
    if start < 0 or end < start or end > column.data_size:
        return 0, -2
    return cython.cast(Size, start), cython.cast(Size, end - start)


def largest_row(values: BytesInput, keys: BytesInput | None, rows: Size) -> int:
    """The bytes of key and value in the row that has most of them."""
    row: Size
    length: Size
    size: Size
    found: Size = 0
    for row in range(rows):
        size = _bounds(values, row)[1]
        if size < 0:
            size = 0
        if keys is not None:
            length = _bounds(keys, row)[1]
            if length > 0:
                size += length
        if size > found:
            found = size
    return found


@cython.cclass
class OpenBatch:
    """A batch that grows: room for its header, then records. What is not written yet is not cleared."""

    data: bytearray
    target: Output
    capacity: Size
    size: Size
    count: Size
    base_timestamp: Long
    max_timestamp: Long

    def __init__(self, capacity: Size, timestamp: Long) -> None:
        self.data = uncleared(capacity)
        if cython.compiled:
            self.target = cython.cast(Output, PyByteArray_AS_STRING(self.data))
            memset(self.target, 0, HEADER_SIZE)
        else:
            self.target = self.data
        self.capacity = capacity
        self.size = HEADER_SIZE
        self.count = 0
        self.base_timestamp = timestamp
        self.max_timestamp = timestamp


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_bytes(target: Output, position: Size, column: BytesInput, place: tuple[Size, Size]) -> Size:
    """Write a length, -1 for null, and the bytes at that start; gives the position after them."""
    position = write_varint(target, position, place[1])
    if place[1] <= 0:
        return position
    if cython.compiled:
        memcpy(target + position, column.data + place[0], place[1])
    else:
        target[position : position + place[1]] = column.data[place[0] : place[0] + place[1]]
    return position + place[1]


@cython.cclass
class TableEncoder:
    """Encodes rows of the columns that were loaded last; see the .pyi."""

    finished = cython.declare(list, visibility="readonly")
    open_batches: list
    spread: list
    turn: cython.Py_ssize_t
    whose_turn: cython.Py_ssize_t
    finished_bytes: cython.Py_ssize_t
    partitions: cython.Py_ssize_t
    batch_bytes: cython.Py_ssize_t
    record_bytes_max: cython.Py_ssize_t
    ignores_keys: cython.bint
    keys: BytesInput
    values: BytesInput
    names: BytesInput
    header_values: BytesInput
    header_ends: cython.const[cython.longlong][::1]
    first_header: cython.Py_ssize_t
    numbers: cython.const[cython.int][::1]
    timestamps: cython.const[cython.longlong][::1]
    timestamp: cython.longlong

    def __init__(
        self,
        partitions: int,
        batch_bytes: cython.Py_ssize_t,
        record_bytes_max: cython.Py_ssize_t,
        spread: list,
        ignores_keys: bool = False,
    ) -> None:
        if partitions < 1 or not spread or min(spread) < 0 or max(spread) >= partitions:
            raise ValueError("rows are spread over partitions that there are")
        self.finished = []
        self.open_batches = [None] * partitions
        self.spread = list(spread)
        self.turn = 0
        self.whose_turn = spread[0]
        self.finished_bytes = 0
        self.partitions = partitions
        self.batch_bytes = batch_bytes
        self.record_bytes_max = record_bytes_max
        self.ignores_keys = ignores_keys

    def load(
        self,
        values: BytesInput,
        keys: BytesInput | None,
        headers: tuple | None,
        numbers: object,
        timestamps: object,
    ) -> None:
        self.values = values
        self.keys = keys
        self.names = None
        if headers is not None:
            self.first_header, self.header_ends, self.names, self.header_values = headers
        self.numbers = numbers
        self.timestamp = 0
        self.timestamps = None
        if isinstance(timestamps, int):
            self.timestamp = timestamps
        else:
            self.timestamps = timestamps

    def encode(
        self, row: cython.Py_ssize_t, end: cython.Py_ssize_t, bytes_max: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Encode rows from `row` to `end` until `bytes_max` bytes are finished; gives the row to go on at."""
        self.finished_bytes = 0
        if row < 0:
            raise ValueError("a row is not negative")
        while row < end and self.finished_bytes < bytes_max:
            _encode_row(self, row)
            row += 1
        return row

    def finish(self) -> None:
        """Finish the batches that are still open."""
        index: cython.Py_ssize_t
        for index in range(self.partitions):
            if self.open_batches[index] is not None:
                _close(self, index)


@cython.cfunc
@cython.exceptval(-1)
def _close(encoder: TableEncoder, partition: cython.Py_ssize_t) -> cython.int:
    batch: OpenBatch = encoder.open_batches[partition]
    data: bytearray = batch.data
    encoder.open_batches[partition] = None
    if cython.compiled:
        PyByteArray_Resize(data, batch.size)
    else:
        del data[batch.size :]
    encoder.finished_bytes += batch.size
    encoder.finished.append((partition, data, batch.count, batch.base_timestamp, batch.max_timestamp))
    if encoder.whose_turn == partition:
        encoder.turn = (encoder.turn + 1) % len(encoder.spread)
        encoder.whose_turn = encoder.spread[encoder.turn]
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _headers_size(
    encoder: TableEncoder, row: cython.Py_ssize_t
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """(number of headers, bytes they take when written); the number is -2 where the buffers lie."""
    place: cython.Py_ssize_t = encoder.first_header + row
    start: cython.longlong
    end: cython.longlong
    index: cython.longlong
    length: cython.Py_ssize_t
    size: cython.Py_ssize_t = 0
    _: cython.Py_ssize_t
    if place < 0 or place + 1 >= encoder.header_ends.shape[0]:
        return -2, 0
    start = encoder.header_ends[place]
    end = encoder.header_ends[place + 1]
    if start < 0 or end < start:
        return -2, 0
    for index in range(start, end):
        _, length = _bounds(encoder.names, cython.cast(cython.Py_ssize_t, index))
        if length < 0:
            return -2, 0
        size += varint_size(length) + length
        _, length = _bounds(encoder.header_values, cython.cast(cython.Py_ssize_t, index))
        if length < -1:
            return -2, 0
        size += varint_size(length) + (length if length > 0 else 0)
    return cython.cast(cython.Py_ssize_t, end - start), size


@cython.cfunc
@cython.exceptval(-1)
def _partition(
    encoder: TableEncoder, row: cython.Py_ssize_t, start: cython.Py_ssize_t, length: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """The partition that the row names, else the one of its key, else the one whose turn it is."""
    number: cython.Py_ssize_t
    if encoder.numbers is not None:
        if row >= encoder.numbers.shape[0]:
            raise ValueError("there are fewer partitions than rows")
        number = encoder.numbers[row]
        if number >= encoder.partitions:
            raise ValueError(f"row {row} is for partition {number}, and there are {encoder.partitions}")
        if number >= 0:
            return number
    if length >= 0 and not encoder.ignores_keys:
        return (
            cython.cast(cython.Py_ssize_t, hash_of_key(encoder.keys.data, start, length)) % encoder.partitions
        )
    return encoder.whose_turn


@cython.cfunc
@cython.exceptval(-1)
def _encode_row(encoder: TableEncoder, row: cython.Py_ssize_t) -> cython.int:
    batch: OpenBatch
    key_start: cython.Py_ssize_t = 0
    key_length: cython.Py_ssize_t = -1
    value_start: cython.Py_ssize_t
    value_length: cython.Py_ssize_t
    headers: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t = 0
    timestamp: cython.longlong = encoder.timestamp
    if encoder.timestamps is not None:
        if row >= encoder.timestamps.shape[0]:
            raise ValueError("there are fewer timestamps than rows")
        timestamp = encoder.timestamps[row]
    if encoder.keys is not None:
        key_start, key_length = _bounds(encoder.keys, row)
    value_start, value_length = _bounds(encoder.values, row)
    if encoder.names is not None:
        headers, size = _headers_size(encoder, row)
    if key_length < -1 or value_length < -1 or headers < 0:
        raise ValueError(f"row {row} reaches beyond its buffers, or a header has no name")
    size += (key_length if key_length > 0 else 0) + (value_length if value_length > 0 else 0)
    if size > encoder.record_bytes_max - HEADER_SIZE:
        raise OverflowError(f"row {row} has {size} bytes")
    batch = _batch_for(encoder, row, (key_start, key_length), size, timestamp)
    _write(encoder, batch, row, timestamp, (key_start, key_length, value_start, value_length, headers, size))
    return 0


@cython.cfunc
def _batch_for(
    encoder: TableEncoder,
    row: cython.Py_ssize_t,
    key: tuple[cython.Py_ssize_t, cython.Py_ssize_t],
    size: cython.Py_ssize_t,
    timestamp: cython.longlong,
) -> OpenBatch:
    """The batch of the row's partition, with room for `size` bytes."""
    partition: cython.Py_ssize_t = _partition(encoder, row, key[0], key[1])
    batch: OpenBatch = encoder.open_batches[partition]
    while batch is not None and batch.size + size + RECORD_OVERHEAD > batch.capacity:
        _close(encoder, partition)
        # Without a key it is another partition's turn, which may have a full batch as well.
        partition = _partition(encoder, row, key[0], key[1])
        batch = encoder.open_batches[partition]
    if batch is None:
        batch = OpenBatch(max(encoder.batch_bytes, HEADER_SIZE + size + RECORD_OVERHEAD), timestamp)
        encoder.open_batches[partition] = batch
    return batch


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _write(
    encoder: TableEncoder,
    batch: OpenBatch,
    row: cython.Py_ssize_t,
    timestamp: cython.longlong,
    found: tuple[
        cython.Py_ssize_t,
        cython.Py_ssize_t,
        cython.Py_ssize_t,
        cython.Py_ssize_t,
        cython.Py_ssize_t,
        cython.Py_ssize_t,
    ],
) -> cython.void:
    """Append the record to the batch, which has room for it."""
    start: Size
    length: Size
    index: Long
    target: Output = batch.target
    position: Size = batch.size
    delta: Long = timestamp - batch.base_timestamp
    size: Size = found[5] + 1 + varint_size(delta) + varint_size(batch.count)
    size += varint_size(found[1]) + varint_size(found[3]) + varint_size(found[4])
    position = write_varint(target, position, size)
    target[position] = 0
    position = write_varint(target, position + 1, delta)
    position = write_varint(target, position, batch.count)
    if found[1] < 0:
        position = write_varint(target, position, -1)
    else:
        position = _put_bytes(target, position, encoder.keys, (found[0], found[1]))
    position = _put_bytes(target, position, encoder.values, (found[2], found[3]))
    position = write_varint(target, position, found[4])
    for index in range(found[4]):
        row_of_header: Size = cython.cast(Size, encoder.header_ends[encoder.first_header + row] + index)
        start, length = _bounds(encoder.names, row_of_header)
        position = _put_bytes(target, position, encoder.names, (start, length))
        start, length = _bounds(encoder.header_values, row_of_header)
        position = _put_bytes(target, position, encoder.header_values, (start, length))
    batch.size = position
    batch.count += 1
    if timestamp > batch.max_timestamp:
        batch.max_timestamp = timestamp
