# cython: boundscheck=False, wraparound=False
"""Records of a batch (magic 2) as the buffers of Arrow columns, with no Python object for each record.

Records are read in steps: first a table of the positions of their parts, where every length is checked, then
each column in a loop of its own. So nothing is allocated for a length that is wrong, and a malformed record
leaves no half row behind."""

from array import array

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
    from cython.cimports.cpython.array import array as c_array
    from cython.cimports.cpython.array import resize_smart
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.libc.string import memcpy
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

Size = cython.typedef(cython.Py_ssize_t)
Long = cython.typedef(cython.longlong)
Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])
Output = cython.typedef(cython.pointer[cython.uchar])

LONG_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
# The end offsets of Arrow's binary columns are 32 bits wide.
INT_MAX = cython.declare(cython.longlong, 0x7FFFFFFF)
# Records in one step: few enough that they stay in the cache of the processor.
STEP = cython.declare(cython.Py_ssize_t, 512)

# A record that was found.
Row = cython.struct(
    offset=cython.longlong,
    timestamp=cython.longlong,
    headers_start=cython.Py_ssize_t,
    header_count=cython.Py_ssize_t,
)
# The bytes of a key, a value, or a part of a header; the length is -1 for null.
Cell = cython.struct(start=cython.Py_ssize_t, length=cython.Py_ssize_t)

# Why a step ended, beside the errors of the shared kernel, which are above 0.
FULL_STEP = cython.declare(cython.int, 0)
ENDED = cython.declare(cython.int, -1)
OUT_OF_RANGE = cython.declare(cython.int, -2)
LEFT_OVER = cython.declare(cython.int, -3)


@cython.cclass
class BinaryColumn:
    """A growing column of bytes: end offsets, a validity bit for each row, the bytes.

    After trim() these are the buffers of an Arrow column."""

    rows = cython.declare(cython.Py_ssize_t, visibility="readonly")
    nulls = cython.declare(cython.Py_ssize_t, visibility="readonly")
    ends = cython.declare(object, visibility="readonly")
    bits = cython.declare(bytearray, visibility="readonly")
    data = cython.declare(bytearray, visibility="readonly")
    size: Size

    def __init__(self) -> None:
        self.rows = 0
        self.nulls = 0
        self.size = 0
        self.ends = array("i", (0,))
        self.bits = bytearray()
        self.data = bytearray()

    def trim(self) -> None:
        """Remove the room that was not needed."""
        del self.ends[self.rows + 1 :]
        del self.bits[(self.rows + 7) // 8 :]
        del self.data[self.size :]


@cython.cclass
class ColumnBuffers:
    """Rows of records as growing columns; only those in `wanted` are filled (see the .pyi)."""

    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    size = cython.declare(cython.longlong, visibility="readonly")
    position = cython.declare(cython.Py_ssize_t, visibility="readonly")
    left = cython.declare(cython.Py_ssize_t, visibility="readonly")
    next_offset = cython.declare(cython.longlong, visibility="readonly")
    keys = cython.declare(BinaryColumn, visibility="readonly")
    values = cython.declare(BinaryColumn, visibility="readonly")
    header_ends = cython.declare(object, visibility="readonly")
    header_names = cython.declare(BinaryColumn, visibility="readonly")
    header_values = cython.declare(BinaryColumn, visibility="readonly")
    offsets = cython.declare(object, visibility="readonly")
    timestamps = cython.declare(object, visibility="readonly")
    table_memory: bytearray
    rows_found: cython.pointer[Row]
    key_cells: cython.pointer[Cell]
    value_cells: cython.pointer[Cell]
    header_name_cells: cython.pointer[Cell]
    header_value_cells: cython.pointer[Cell]
    record: Record
    header: RecordHeader
    owner: object
    view: cython.const[cython.uchar][::1]
    data: Input
    end: Size
    base_offset: Long
    base_timestamp: Long
    last_offset: Long
    rows_max: Long
    bytes_max: Long
    # How much more data is still to come, as a multiple of what is being appended.
    ahead: cython.double

    def __init__(self, wanted: frozenset) -> None:
        self.count = self.size = self.position = self.left = self.next_offset = 0
        self.keys = BinaryColumn() if "key" in wanted else None
        self.values = BinaryColumn() if "value" in wanted else None
        self.header_ends = array("i", (0,)) if "headers" in wanted else None
        self.header_names = BinaryColumn()
        self.header_values = BinaryColumn()
        self.offsets = array("q") if "offset" in wanted else None
        self.timestamps = array("q") if "timestamp" in wanted else None
        self.record = Record()
        self.header = RecordHeader()
        self.owner = None
        if cython.compiled:
            row_bytes: Size = STEP * cython.sizeof(Row)
            cell_bytes: Size = STEP * cython.sizeof(Cell)
            self.table_memory = bytearray(row_bytes + 4 * cell_bytes)
            memory: Output = _bytes_of(self.table_memory)
            self.rows_found = cython.cast(cython.pointer[Row], memory)
            self.key_cells = cython.cast(cython.pointer[Cell], memory + row_bytes)
            self.value_cells = self.key_cells + STEP
            self.header_name_cells = self.value_cells + STEP
            self.header_value_cells = self.header_name_cells + STEP
        else:
            self.rows_found = [Row() for _ in range(STEP)]
            self.key_cells = [Cell() for _ in range(STEP)]
            self.value_cells = [Cell() for _ in range(STEP)]
            self.header_name_cells = [Cell() for _ in range(STEP)]
            self.header_value_cells = [Cell() for _ in range(STEP)]

    def append_batch(
        self, batch: OpenBatch, first_offset: Long, last_offset: Long, rows_max: Long, bytes_max: Long
    ) -> int:
        """Append the records of a batch from `first_offset` to `last_offset`; see the .pyi."""
        state: cython.int = FULL_STEP
        rows: Size
        start: Size
        if batch.base_offset < 0:
            raise ValueError(f"the base offset is out of bounds: {batch.base_offset}")
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
        self.base_timestamp = batch.base_timestamp
        self.next_offset = first_offset
        self.last_offset = last_offset
        self.rows_max = min(rows_max, INT_MAX - 1)
        self.bytes_max = min(bytes_max, INT_MAX)
        while state == FULL_STEP:
            start = self.position
            state, rows = _find_rows(self)
            if rows > 0:
                data_ahead: cython.double = len(batch.data) / (self.position - start)
                self.ahead = min(data_ahead, (self.rows_max - self.count) / rows)
                _append_rows(self, rows, batch.append_time)
        if state != ENDED:
            where = max(self.next_offset, self.base_offset)
            raise ValueError(f"the record at or after offset {where}: {_error_text(state)}")
        return self.next_offset

    def trim(self) -> None:
        """Remove the room that was not needed: after this the columns are those of Arrow."""
        for column in (self.keys, self.values, self.header_names, self.header_values):
            if column is not None:
                column.trim()
        for numbers, more in ((self.offsets, 0), (self.timestamps, 0), (self.header_ends, 1)):
            if numbers is not None:
                del numbers[self.count + more :]


def _error_text(state: cython.int) -> str:
    if state == OUT_OF_RANGE:
        return "an offset or timestamp is out of range"
    if state == LEFT_OVER:
        return "bytes are left over after the last record"
    return RECORD_ERRORS[state]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _cost(columns: ColumnBuffers, record: Record) -> Long:
    """The bytes that the record would add. A header counts as one more, so that headers can be numbered."""
    cost: Long = 0
    if columns.keys is not None and record.key_length > 0:
        cost += record.key_length
    if columns.values is not None and record.value_length > 0:
        cost += record.value_length
    if columns.header_ends is not None:
        cost += record.header_count + record.header_bytes
    return cost


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_out_of_range(columns: ColumnBuffers, record: Record) -> cython.bint:
    if sum_overflows(columns.base_timestamp, record.timestamp_delta):
        return True
    # The offset after this one must be in range, too.
    return (
        sum_overflows(columns.base_offset, record.offset_delta)
        or columns.base_offset + record.offset_delta == LONG_MAX
    )


@cython.cfunc
@cython.exceptval(check=False)
def _find_rows(columns: ColumnBuffers) -> tuple[cython.int, cython.Py_ssize_t]:
    """Find the next records, at most STEP, and move after them: (why it ended, rows found)."""
    error: cython.int
    cost: Long
    offset: Long
    rows: Size = 0
    record: Record = columns.record
    while rows < STEP:
        if columns.left == 0:
            return ENDED if columns.position == columns.end else LEFT_OVER, rows
        if columns.count + rows >= columns.rows_max:
            return ENDED, rows
        error = _read_next(columns, record)
        if error != 0:
            return error, rows
        offset = columns.base_offset + record.offset_delta
        if offset > columns.last_offset:
            if columns.next_offset <= columns.last_offset:
                columns.next_offset = columns.last_offset + 1
            return ENDED, rows
        if offset >= columns.next_offset:
            cost = _cost(columns, record)
            if columns.size + cost > columns.bytes_max and columns.count + rows > 0:
                return ENDED, rows
            columns.size += cost
            columns.next_offset = offset + 1
            _note_row(columns, record, rows)
            rows += 1
        columns.position = record.end
        columns.left -= 1
    return FULL_STEP, rows


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _read_next(columns: ColumnBuffers, record: Record) -> cython.int:
    """Read the next record; returns 0 or the error."""
    error: cython.int = read_record(columns.data, columns.position, columns.end, record)
    if error == 0:
        error = read_headers(columns.data, record)
    if error == 0 and _is_out_of_range(columns, record):
        return OUT_OF_RANGE
    return error


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _note_row(columns: ColumnBuffers, record: Record, row: Size) -> cython.void:
    columns.rows_found[row].offset = columns.base_offset + record.offset_delta
    columns.rows_found[row].timestamp = columns.base_timestamp + record.timestamp_delta
    columns.rows_found[row].headers_start = record.headers_start
    columns.rows_found[row].header_count = record.header_count
    columns.key_cells[row].start = record.key_start
    columns.key_cells[row].length = record.key_length
    columns.value_cells[row].start = record.value_start
    columns.value_cells[row].length = record.value_length


@cython.cfunc
def _append_rows(columns: ColumnBuffers, rows: Size, append_time: object) -> object:
    """Append the records that were found to the columns."""
    row: Size
    timestamp: Long
    numbers: cython.pointer[cython.longlong]
    if columns.keys is not None:
        _fill(columns, columns.keys, columns.key_cells, rows)
    if columns.values is not None:
        _fill(columns, columns.values, columns.value_cells, rows)
    if columns.header_ends is not None:
        _fill_headers(columns, rows)
    if columns.offsets is not None:
        _lengthen(columns, columns.offsets, columns.count + rows, rows)
        numbers = _longs_of(columns.offsets)
        for row in range(rows):
            numbers[columns.count + row] = columns.rows_found[row].offset
    if columns.timestamps is not None:
        _lengthen(columns, columns.timestamps, columns.count + rows, rows)
        numbers = _longs_of(columns.timestamps)
        timestamp = 0 if append_time is None else append_time
        for row in range(rows):
            if append_time is None:
                timestamp = columns.rows_found[row].timestamp
            numbers[columns.count + row] = timestamp
    columns.count += rows


@cython.cfunc
def _grow(columns: ColumnBuffers, buffer: bytearray, needed: Size, added: Size) -> object:
    """Make room for `needed` bytes, of which `added` are new, and for what is still to come, so that little
    is moved. The new part is not cleared: the first access to its pages is what costs time."""
    if needed > len(buffer):
        needed += max(needed // 2, cython.cast(Size, added * columns.ahead))
        if cython.compiled:
            PyByteArray_Resize(buffer, needed)
        else:
            buffer.extend(bytes(needed - len(buffer)))


@cython.cfunc
def _lengthen(columns: ColumnBuffers, numbers: object, needed: Size, added: Size) -> object:
    """Like _grow, for an array of numbers."""
    if needed > len(numbers):
        needed += max(needed // 2, cython.cast(Size, added * columns.ahead))
        if cython.compiled:
            resize_smart(cython.cast(c_array, numbers), needed)
        else:
            numbers.frombytes(bytes(numbers.itemsize * (needed - len(numbers))))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _bytes_of(buffer: bytearray) -> Output:
    return cython.cast(Output, PyByteArray_AS_STRING(buffer)) if cython.compiled else buffer


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _ints_of(numbers: object) -> cython.pointer[cython.int]:
    return cython.cast(c_array, numbers).data.as_ints if cython.compiled else numbers


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _longs_of(numbers: object) -> cython.pointer[cython.longlong]:
    return cython.cast(c_array, numbers).data.as_longlongs if cython.compiled else numbers


@cython.cfunc
def _fill(columns: ColumnBuffers, column: BinaryColumn, cells: cython.pointer[Cell], rows: Size) -> object:
    """Append these cells to the column."""
    index: Size
    length: Size
    data: Input = columns.data
    row: Size = column.rows
    position: Size = 0
    for index in range(rows):
        if cells[index].length > 0:
            position += cells[index].length
    _lengthen(columns, column.ends, row + rows + 1, rows)
    _grow(columns, column.bits, (row + rows + 7) // 8, (rows + 7) // 8)
    _grow(columns, column.data, column.size + position, position)
    ends: cython.pointer[cython.int] = _ints_of(column.ends)
    bits: Output = _bytes_of(column.bits)
    target: Output = _bytes_of(column.data)
    position = column.size
    for index in range(rows):
        length = cells[index].length
        if row & 7 == 0:
            bits[row >> 3] = 0
        if length >= 0:
            bits[row >> 3] |= 1 << (row & 7)
            if cython.compiled:
                memcpy(target + position, data + cells[index].start, length)
            else:
                start = cells[index].start
                target[position : position + length] = data[start : start + length]
            position += length
        else:
            column.nulls += 1
        row += 1
        ends[row] = cython.cast(cython.int, position)
    column.rows = row
    column.size = position


@cython.cfunc
def _fill_headers(columns: ColumnBuffers, rows: Size) -> object:
    """Append the headers of the records that were found; read_headers has checked them."""
    _: Size
    row: Size
    position: Size
    header: RecordHeader = columns.header
    noted: Size = 0
    place: Size = columns.count + 1
    _lengthen(columns, columns.header_ends, place + rows, rows)
    ends: cython.pointer[cython.int] = _ints_of(columns.header_ends)
    for row in range(rows):
        position = columns.rows_found[row].headers_start
        for _ in range(columns.rows_found[row].header_count):
            position = read_header(columns.data, position, columns.end, header)
            columns.header_name_cells[noted].start = header.name_start
            columns.header_name_cells[noted].length = header.name_length
            columns.header_value_cells[noted].start = header.value_start
            columns.header_value_cells[noted].length = header.value_length
            noted += 1
            if noted == STEP:
                _fill(columns, columns.header_names, columns.header_name_cells, noted)
                _fill(columns, columns.header_values, columns.header_value_cells, noted)
                noted = 0
        ends[place] = cython.cast(cython.int, columns.header_names.rows + noted)
        place += 1
    if noted > 0:
        _fill(columns, columns.header_names, columns.header_name_cells, noted)
        _fill(columns, columns.header_values, columns.header_value_cells, noted)
