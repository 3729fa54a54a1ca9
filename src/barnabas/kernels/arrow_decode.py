# cython: boundscheck=False, wraparound=False
"""Records of a batch (magic 2) as the buffers of Arrow columns, with no Python object per record.

The records are found first, some at a time, as a table of positions that is checked at every length; then
each column is filled by a loop of its own. So nothing is allocated for what a lying length claims, and a
record that is malformed leaves no half row behind."""

from array import array

import cython

if cython.compiled:
    from cython.cimports.cpython.array import array as c_array
    from cython.cimports.cpython.array import resize_smart
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.libc.string import memcpy

Size = cython.typedef(cython.Py_ssize_t)
Long = cython.typedef(cython.longlong)
Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])
Output = cython.typedef(cython.pointer[cython.uchar])
Table = cython.typedef(cython.pointer[cython.longlong])

LONG_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
# The end offsets of Arrow's binary columns are 32 bits wide.
INT_MAX = cython.declare(cython.longlong, 0x7FFFFFFF)
# Records found at a time: few enough that they stay in the processor's cache.
STEP = cython.declare(cython.Py_ssize_t, 512)
# The fields of a found record.
OFFSET = cython.declare(cython.Py_ssize_t, 0)
TIMESTAMP = cython.declare(cython.Py_ssize_t, 1)
KEY = cython.declare(cython.Py_ssize_t, 2)  # start, then length
VALUE = cython.declare(cython.Py_ssize_t, 4)  # start, then length
HEADERS = cython.declare(cython.Py_ssize_t, 6)  # start, number, bytes of names and values
FIELDS = cython.declare(cython.Py_ssize_t, 9)
# Why no more records are found.
MORE = cython.declare(cython.int, 0)
ENDED = cython.declare(cython.int, 1)
ERRORS = (
    "",
    "",
    "a varint is malformed",
    "a length is out of bounds",
    "an offset or timestamp is out of range",
    "bytes are left over in the record",
    "bytes are left over after the last record",
)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint(data: Input, position: Size, end: Size, bits: cython.int) -> tuple[Long, Size]:
    """A zigzag varint of at most `bits` bits: (value, position after it), the position -1 where malformed."""
    byte: cython.ulonglong
    raw: cython.ulonglong = 0
    shift: cython.int = 0
    if position < end and data[position] < 0x80:
        byte = data[position]
        return cython.cast(cython.longlong, byte >> 1) ^ -cython.cast(cython.longlong, byte & 1), position + 1
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
    return 0, -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _length(data: Input, position: Size, end: Size, lowest: cython.int) -> tuple[Long, Size]:
    """A length from `lowest` on that stays within `end`, and the position after it: below 0 where malformed,
    the negative of the error's number."""
    length: Long
    length, position = _varint(data, position, end, 32)
    if position < 0:
        return 0, -2
    if length < lowest or length > end - position:
        return 0, -3
    return length, position


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _overflows(base: Long, delta: Long) -> cython.bint:
    if delta > 0:
        return base > LONG_MAX - delta
    return base < -LONG_MAX - 1 - delta


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _find_headers(data: Input, position: Size, end: Size, table: Table, row: Size) -> cython.int:
    """Note the headers that lie between `position` and `end`, which they must reach; gives the error."""
    _: Long
    count: Long
    length: Long
    size: Long = 0
    count, position = _length(data, position, end, 0)
    if position < 0:
        return cython.cast(cython.int, -position)
    table[row + HEADERS] = position
    table[row + HEADERS + 1] = count
    for _ in range(count):
        length, position = _length(data, position, end, 0)
        if position < 0:
            return cython.cast(cython.int, -position)
        size += length
        position += cython.cast(Size, length)
        length, position = _length(data, position, end, -1)
        if position < 0:
            return cython.cast(cython.int, -position)
        if length > 0:
            size += length
            position += cython.cast(Size, length)
    table[row + HEADERS + 2] = size
    return 0 if position == end else 5


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _find_body(data: Input, position: Size, end: Size, table: Table, row: Size) -> cython.int:
    """Note the key, the value and the headers, which fill `position` to `end`; gives the error."""
    field: Size
    length: Long
    for field in range(KEY, HEADERS, 2):
        length, position = _length(data, position, end, -1)
        if position < 0:
            return cython.cast(cython.int, -position)
        table[row + field] = position
        table[row + field + 1] = length
        if length > 0:
            position += cython.cast(Size, length)
    return _find_headers(data, position, end, table, row)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _find(
    data: Input, place: tuple[Size, Size], table: Table, row: Size, bases: tuple[Long, Long, Long]
) -> tuple[cython.int, Size]:
    """Note the record that lies between the two of `place`: (error, position after it). `bases` are offset,
    timestamp, and the lowest offset that is noted."""
    length: Long
    delta: Long
    end: Size
    position: Size
    length, position = _length(data, place[0], place[1], 6)
    if position < 0:
        return cython.cast(cython.int, -position), 0
    end = position + cython.cast(Size, length)
    delta, position = _varint(data, position + 1, end, 64)
    if position < 0:
        return 2, 0
    if _overflows(bases[1], delta):
        return 4, 0
    table[row + TIMESTAMP] = bases[1] + delta
    delta, position = _varint(data, position, end, 32)
    if position < 0:
        return 2, 0
    # One below the highest, so that the offset after it is one as well.
    if _overflows(bases[0], delta) or bases[0] + delta == LONG_MAX:
        return 4, 0
    table[row + OFFSET] = bases[0] + delta
    if table[row + OFFSET] < bases[2]:
        return 0, end
    return _find_body(data, position, end, table, row), end


@cython.cclass
class BinaryColumn:
    """A growing column of bytes: end offsets, a validity bit per row, the bytes; Arrow's after trim()."""

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
        """Give back the room that was not needed."""
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
    table_memory: object
    table: Table
    header_table: Table
    owner: object
    view: cython.const[cython.uchar][::1]
    data: Input
    end: Size
    # How much more of the data is still to come, as a multiple of what is being appended.
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
        self.table_memory = (array("q", bytes(8 * FIELDS * STEP)), array("q", bytes(8 * 4 * STEP)))
        self.table = _longs_of(self.table_memory[0])
        self.header_table = _longs_of(self.table_memory[1])
        self.owner = None

    def append_batch(
        self, data: object, place: tuple, count: Size, facts: tuple, bounds: tuple, limits: tuple
    ) -> int:
        """Append the records of a batch whose offsets are within `bounds`; gives the offset to go on at."""
        state: cython.int = MORE
        rows: Size
        bases: tuple[Long, Long] = (facts[0], facts[1])
        last_offset: Long = bounds[1]
        rows_max: Long = min(limits[0], INT_MAX - 1)
        bytes_max: Long = min(limits[1], INT_MAX)
        if data is not self.owner:
            # Batches that lie in the same memory follow each other.
            self.view = data if cython.compiled else memoryview(data)
            self.owner = data
        self.left = 0
        self.position, self.end = place
        if not 0 <= self.position <= self.end <= len(data) or count < 0 or bases[0] < 0:
            raise ValueError("a position, count or base offset is out of bounds")
        if cython.compiled:
            self.data = cython.address(self.view[0])
        else:
            self.data = self.view
        self.left = count
        self.next_offset = bounds[0]
        while state == MORE:
            start: Size = self.position
            state, rows = _find_some(self, bases, last_offset, (rows_max, bytes_max))
            if rows > 0:
                self.ahead = min(len(data) / (self.position - start), (rows_max - self.count) / rows)
                _append(self, rows, facts[2])
        if state != ENDED:
            where = max(self.next_offset, bases[0])
            raise ValueError(f"the record at or after offset {where}: {ERRORS[state]}")
        return self.next_offset

    def trim(self) -> None:
        """Give back the room that was not needed: the columns are then Arrow's."""
        for column in (self.keys, self.values, self.header_names, self.header_values):
            if column is not None:
                column.trim()
        for numbers, more in ((self.offsets, 0), (self.timestamps, 0), (self.header_ends, 1)):
            if numbers is not None:
                del numbers[self.count + more :]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _cost(columns: ColumnBuffers, row: Size) -> Long:
    """The bytes that a found record would add; a header counts as one more, so that they can be numbered."""
    cost: Long = 0
    if columns.keys is not None and columns.table[row + KEY + 1] > 0:
        cost += columns.table[row + KEY + 1]
    if columns.values is not None and columns.table[row + VALUE + 1] > 0:
        cost += columns.table[row + VALUE + 1]
    if columns.header_ends is not None:
        cost += columns.table[row + HEADERS + 1] + columns.table[row + HEADERS + 2]
    return cost


@cython.cfunc
@cython.exceptval(check=False)
def _find_some(
    columns: ColumnBuffers, bases: tuple[Long, Long], last_offset: Long, limits: tuple[Long, Long]
) -> tuple[cython.int, Size]:
    """Find the next records, at most STEP, and stand behind them: (MORE, ENDED or error, rows found)."""
    error: cython.int
    position: Size
    cost: Long
    rows: Size = 0
    row: Size = 0
    while rows < STEP:
        if columns.left == 0:
            return ENDED if columns.position == columns.end else 6, rows
        if columns.count + rows >= limits[0]:
            return ENDED, rows
        place: tuple[Size, Size] = (columns.position, columns.end)
        error, position = _find(
            columns.data, place, columns.table, row, (bases[0], bases[1], columns.next_offset)
        )
        if error != 0:
            return error, rows
        if columns.table[row + OFFSET] > last_offset:
            if columns.next_offset <= last_offset:
                columns.next_offset = last_offset + 1
            return ENDED, rows
        if columns.table[row + OFFSET] >= columns.next_offset:
            cost = _cost(columns, row)
            if columns.size + cost > limits[1] and columns.count + rows > 0:
                return ENDED, rows
            columns.size += cost
            columns.next_offset = columns.table[row + OFFSET] + 1
            rows += 1
            row += FIELDS
        columns.position = position
        columns.left -= 1
    return MORE, rows


@cython.cfunc
def _append(columns: ColumnBuffers, rows: Size, append_time: object) -> object:
    """Append the records that were found."""
    index: Size
    if columns.keys is not None:
        _fill(columns, columns.keys, columns.table, (KEY, FIELDS), rows)
    if columns.values is not None:
        _fill(columns, columns.values, columns.table, (VALUE, FIELDS), rows)
    if columns.header_ends is not None:
        _fill_headers(columns, rows)
    if columns.offsets is not None:
        _fill_numbers(columns, columns.offsets, OFFSET, rows)
    if append_time is not None:
        for index in range(rows):
            columns.table[index * FIELDS + TIMESTAMP] = append_time
    if columns.timestamps is not None:
        _fill_numbers(columns, columns.timestamps, TIMESTAMP, rows)
    columns.count += rows


@cython.cfunc
def _grow(columns: ColumnBuffers, buffer: bytearray, needed: Size, added: Size) -> object:
    """Have room for `needed` bytes, of which `added` are new. What is to come is reckoned with, so that
    little is moved; the new part is not cleared: the first touch of its pages is what is dear."""
    if needed > len(buffer):
        needed += max(needed // 2, cython.cast(Size, added * columns.ahead))
        if cython.compiled:
            PyByteArray_Resize(buffer, needed)
        else:
            buffer.extend(bytes(needed - len(buffer)))


@cython.cfunc
def _lengthen(columns: ColumnBuffers, numbers: object, needed: Size, added: Size) -> object:
    """As _grow, for an array of numbers."""
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
def _longs_of(numbers: object) -> Table:
    return cython.cast(c_array, numbers).data.as_longlongs if cython.compiled else numbers


@cython.cfunc
def _fill(
    columns: ColumnBuffers, column: BinaryColumn, table: Table, field: tuple[Size, Size], rows: Size
) -> object:
    """Append a row for each of `rows` starts and lengths in the table, from field[0] on at every field[1]."""
    index: Size
    start: Size
    length: Size
    data: Input = columns.data
    row: Size = column.rows
    position: Size = 0
    for index in range(rows):
        if table[field[0] + index * field[1] + 1] > 0:
            position += cython.cast(Size, table[field[0] + index * field[1] + 1])
    _lengthen(columns, column.ends, row + rows + 1, rows)
    _grow(columns, column.bits, (row + rows + 7) // 8, (rows + 7) // 8)
    _grow(columns, column.data, column.size + position, position)
    ends: cython.pointer[cython.int] = _ints_of(column.ends)
    bits: Output = _bytes_of(column.bits)
    target: Output = _bytes_of(column.data)
    position = column.size
    for index in range(rows):
        length = cython.cast(Size, table[field[0] + index * field[1] + 1])
        if row & 7 == 0:
            bits[row >> 3] = 0
        if length >= 0:
            bits[row >> 3] |= 1 << (row & 7)
            start = cython.cast(Size, table[field[0] + index * field[1]])
            if cython.compiled:
                memcpy(target + position, data + start, length)
            else:
                target[position : position + length] = data[start : start + length]
            position += length
        else:
            column.nulls += 1
        row += 1
        ends[row] = cython.cast(cython.int, position)
    column.rows = row
    column.size = position


@cython.cfunc
def _fill_numbers(columns: ColumnBuffers, numbers: object, field: Size, rows: Size) -> object:
    index: Size
    _lengthen(columns, numbers, columns.count + rows, rows)
    target: Table = _longs_of(numbers)
    for index in range(rows):
        target[columns.count + index] = columns.table[index * FIELDS + field]


@cython.cfunc
def _fill_headers(columns: ColumnBuffers, rows: Size) -> object:
    """Append the headers of the found records, whose lengths were checked when they were found."""
    _: Long
    index: Size
    row: Size
    field: Size
    position: Size
    length: Long
    noted: Size = 0
    place: Size = columns.count + 1
    _lengthen(columns, columns.header_ends, place + rows, rows)
    ends: cython.pointer[cython.int] = _ints_of(columns.header_ends)
    for index in range(rows):
        row = index * FIELDS
        position = cython.cast(Size, columns.table[row + HEADERS])
        for _ in range(columns.table[row + HEADERS + 1]):
            for field in range(0, 4, 2):
                length, position = _varint(columns.data, position, columns.end, 32)
                columns.header_table[4 * noted + field] = position
                columns.header_table[4 * noted + field + 1] = length
                if length > 0:
                    position += cython.cast(Size, length)
            noted += 1
            if noted == STEP:
                _fill(columns, columns.header_names, columns.header_table, (0, 4), noted)
                _fill(columns, columns.header_values, columns.header_table, (2, 4), noted)
                noted = 0
        ends[place] = cython.cast(cython.int, columns.header_names.rows + noted)
        place += 1
    if noted > 0:
        _fill(columns, columns.header_names, columns.header_table, (0, 4), noted)
        _fill(columns, columns.header_values, columns.header_table, (2, 4), noted)
