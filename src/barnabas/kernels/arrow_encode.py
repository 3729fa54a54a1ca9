# cython: boundscheck=False, wraparound=False
"""Rows of Arrow columns as record batches (magic 2) by partition, with no Python object for each row.

Columns are given as Arrow's buffers: end offsets of 64 bits, bytes, validity bits. Every offset is checked
against the bytes it points into."""

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.hashing import hash_of_key
    from cython.cimports.barnabas.kernels.shared import HEADER_SIZE, uncleared, varint_size, write_varint
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.libc.string import memcpy, memset
else:
    from barnabas.kernels.hashing import hash_of_key
    from barnabas.kernels.shared import HEADER_SIZE, uncleared, varint_size, write_varint

Size = cython.typedef(cython.Py_ssize_t)
Long = cython.typedef(cython.longlong)
Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])
Ends = cython.typedef(cython.pointer[cython.const[cython.longlong]])
Output = cython.typedef(cython.pointer[cython.uchar])

# More than the five varints and the attributes of a record can need.
RECORD_OVERHEAD = cython.declare(cython.Py_ssize_t, 40)

# Where a row has its key and value, how many headers it has, and the bytes of all these when they are
# written.
Row = cython.struct(
    key_start=cython.Py_ssize_t,
    key_length=cython.Py_ssize_t,
    value_start=cython.Py_ssize_t,
    value_length=cython.Py_ssize_t,
    header_count=cython.Py_ssize_t,
    size=cython.Py_ssize_t,
)


@cython.cclass
class BytesInput:
    """A column of bytes: row `i` is element `first` + i of the buffers. Without `bits` there are no nulls."""

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
    """(start, length) of a row; the length is -1 for null and -2 if the row reaches beyond the buffers."""
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
    """The size of key and value of the largest row."""
    row: Size
    _start: Size
    length: Size
    size: Size
    largest: Size = 0
    for row in range(rows):
        _start, size = _bounds(values, row)
        if size < 0:
            size = 0
        if keys is not None:
            _start, length = _bounds(keys, row)
            if length > 0:
                size += length
        if size > largest:
            largest = size
    return largest


@cython.cclass
class EncodedBatch:
    """A batch of one partition: room for its header, then records. The rest is not cleared."""

    partition = cython.declare(cython.Py_ssize_t, visibility="readonly")
    data = cython.declare(bytearray, visibility="readonly")
    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    base_timestamp = cython.declare(cython.longlong, visibility="readonly")
    max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    target: Output
    capacity: Size
    size: Size

    def __init__(self, partition: Size, capacity: Size, timestamp: Long) -> None:
        self.partition = partition
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
def _write_bytes(target: Output, position: Size, column: BytesInput, start: Size, length: Size) -> Size:
    """Write a length, -1 for null, and the bytes at `start`; returns the position after them."""
    position = write_varint(target, position, length)
    if length <= 0:
        return position
    if cython.compiled:
        memcpy(target + position, column.data + start, length)
    else:
        target[position : position + length] = column.data[start : start + length]
    return position + length


@cython.cclass
class TableEncoder:
    """Encodes rows of the columns that were loaded last; see the .pyi."""

    finished = cython.declare(list, visibility="readonly")
    open_batches: list
    spread: list
    turn: cython.Py_ssize_t
    next_partition: cython.Py_ssize_t
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
            raise ValueError(f"rows must be spread over partitions from 0 to {partitions - 1}, not {spread}")
        self.finished = []
        self.open_batches = [None] * partitions
        self.spread = list(spread)
        self.turn = 0
        self.next_partition = spread[0]
        self.finished_bytes = 0
        self.partitions = partitions
        self.batch_bytes = batch_bytes
        self.record_bytes_max = record_bytes_max
        self.ignores_keys = ignores_keys

    def load(
        self,
        values: BytesInput,
        keys: BytesInput | None,
        header_names: BytesInput | None,
        header_values: BytesInput | None,
        header_ends: object,
        numbers: object,
        timestamps: object,
    ) -> None:
        self.values = values
        self.keys = keys
        self.names = header_names
        self.header_values = header_values
        self.header_ends = header_ends
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
        """Encode rows from `row` to `end` until `bytes_max` bytes are finished; returns the next row."""
        self.finished_bytes = 0
        if row < 0:
            raise ValueError(f"a row cannot be negative: {row}")
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
    batch: EncodedBatch = encoder.open_batches[partition]
    data: bytearray = batch.data
    encoder.open_batches[partition] = None
    if cython.compiled:
        PyByteArray_Resize(data, batch.size)
    else:
        del data[batch.size :]
    encoder.finished_bytes += batch.size
    encoder.finished.append(batch)
    if encoder.next_partition == partition:
        encoder.turn = (encoder.turn + 1) % len(encoder.spread)
        encoder.next_partition = encoder.spread[encoder.turn]
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _headers_size(
    encoder: TableEncoder, row: cython.Py_ssize_t
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """(number of headers, their bytes when written); the number is -2 if they reach beyond the buffers."""
    place: cython.Py_ssize_t = row
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
    """The partition that the row names, otherwise that of its key, otherwise the next one in turn."""
    number: cython.Py_ssize_t
    if encoder.numbers is not None:
        if row >= encoder.numbers.shape[0]:
            raise ValueError(f"the partition column ends before row {row}")
        number = encoder.numbers[row]
        if number >= encoder.partitions:
            raise ValueError(
                f"row {row} is for partition {number}; partitions are 0 to {encoder.partitions - 1}"
            )
        if number >= 0:
            return number
    if length >= 0 and not encoder.ignores_keys:
        return (
            cython.cast(cython.Py_ssize_t, hash_of_key(encoder.keys.data, start, length)) % encoder.partitions
        )
    return encoder.next_partition


@cython.cfunc
@cython.exceptval(-1)
def _encode_row(encoder: TableEncoder, index: cython.Py_ssize_t) -> cython.int:
    row: Row = Row(key_start=0, key_length=-1, value_start=0, value_length=-1, header_count=0, size=0)
    timestamp: cython.longlong = encoder.timestamp
    if encoder.timestamps is not None:
        if index >= encoder.timestamps.shape[0]:
            raise ValueError(f"the timestamp column ends before row {index}")
        timestamp = encoder.timestamps[index]
    if encoder.keys is not None:
        row.key_start, row.key_length = _bounds(encoder.keys, index)
    row.value_start, row.value_length = _bounds(encoder.values, index)
    if encoder.names is not None:
        row.header_count, row.size = _headers_size(encoder, index)
    if row.key_length < -1 or row.value_length < -1 or row.header_count < 0:
        raise ValueError(f"row {index} reaches beyond its buffers, or a header has no name")
    row.size += (row.key_length if row.key_length > 0 else 0) + (
        row.value_length if row.value_length > 0 else 0
    )
    if row.size > encoder.record_bytes_max - HEADER_SIZE:
        raise OverflowError(f"row {index} has {row.size} bytes")
    _write(encoder, _batch_for(encoder, index, row, timestamp), index, row, timestamp)
    return 0


@cython.cfunc
def _batch_for(
    encoder: TableEncoder, index: cython.Py_ssize_t, row: Row, timestamp: cython.longlong
) -> EncodedBatch:
    """The batch of the partition of the row, with room for it."""
    partition: cython.Py_ssize_t = _partition(encoder, index, row.key_start, row.key_length)
    batch: EncodedBatch = encoder.open_batches[partition]
    needed: cython.Py_ssize_t = row.size + RECORD_OVERHEAD
    while batch is not None and batch.size + needed > batch.capacity:
        _close(encoder, partition)
        # A row without a key now goes to the next partition in turn, whose batch may be full, too.
        partition = _partition(encoder, index, row.key_start, row.key_length)
        batch = encoder.open_batches[partition]
    if batch is None:
        batch = EncodedBatch(partition, max(encoder.batch_bytes, HEADER_SIZE + needed), timestamp)
        encoder.open_batches[partition] = batch
    return batch


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _write(
    encoder: TableEncoder,
    batch: EncodedBatch,
    index: cython.Py_ssize_t,
    row: Row,
    timestamp: cython.longlong,
) -> cython.void:
    """Append the record to the batch, which has room for it."""
    start: Size
    length: Size
    header: Long
    target: Output = batch.target
    position: Size = batch.size
    delta: Long = timestamp - batch.base_timestamp
    size: Size = row.size + 1 + varint_size(delta) + varint_size(batch.count)
    size += varint_size(row.key_length) + varint_size(row.value_length) + varint_size(row.header_count)
    position = write_varint(target, position, size)
    target[position] = 0
    position = write_varint(target, position + 1, delta)
    position = write_varint(target, position, batch.count)
    if row.key_length < 0:
        position = write_varint(target, position, -1)
    else:
        position = _write_bytes(target, position, encoder.keys, row.key_start, row.key_length)
    position = _write_bytes(target, position, encoder.values, row.value_start, row.value_length)
    position = write_varint(target, position, row.header_count)
    for header in range(row.header_count):
        place: Size = cython.cast(Size, encoder.header_ends[index] + header)
        start, length = _bounds(encoder.names, place)
        position = _write_bytes(target, position, encoder.names, start, length)
        start, length = _bounds(encoder.header_values, place)
        position = _write_bytes(target, position, encoder.header_values, start, length)
    batch.size = position
    batch.count += 1
    if timestamp > batch.max_timestamp:
        batch.max_timestamp = timestamp
