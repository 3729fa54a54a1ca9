# cython: boundscheck=False, wraparound=False
"""Records of a batch (magic 2) as the buffers of Arrow columns, with no Python object per record.

The records are found first, some at a time, as a table of positions that is checked at every length; then
each column is filled by a loop of its own. So nothing is allocated for what a lying length claims, and a
record that is malformed leaves no half row behind."""

from array import array

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_Resize

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
def _varint(
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    bits: cython.int,
) -> tuple[cython.longlong, cython.Py_ssize_t]:
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
def _length(
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    lowest: cython.int,
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A length from `lowest` on that stays within `end`, and the position after it: below 0 where malformed,
    the negative of the error's number."""
    length: cython.longlong
    length, position = _varint(data, position, end, 32)
    if position < 0:
        return 0, -2
    if length < lowest or length > end - position:
        return 0, -3
    return length, position


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _overflows(base: cython.longlong, delta: cython.longlong) -> cython.bint:
    if delta > 0:
        return base > LONG_MAX - delta
    return base < -LONG_MAX - 1 - delta


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _find_headers(
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    table: cython.longlong[::1],
    row: cython.Py_ssize_t,
) -> cython.int:
    """Note the headers that lie between `position` and `end`, which they must reach; gives the error."""
    _: cython.longlong
    count: cython.longlong
    length: cython.longlong
    size: cython.longlong = 0
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
        position += cython.cast(cython.Py_ssize_t, length)
        length, position = _length(data, position, end, -1)
        if position < 0:
            return cython.cast(cython.int, -position)
        if length > 0:
            size += length
            position += cython.cast(cython.Py_ssize_t, length)
    table[row + HEADERS + 2] = size
    return 0 if position == end else 5


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _find_body(
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    table: cython.longlong[::1],
    row: cython.Py_ssize_t,
) -> cython.int:
    """Note the key, the value and the headers, which fill `position` to `end`; gives the error."""
    field: cython.Py_ssize_t
    length: cython.longlong
    for field in range(KEY, HEADERS, 2):
        length, position = _length(data, position, end, -1)
        if position < 0:
            return cython.cast(cython.int, -position)
        table[row + field] = position
        table[row + field + 1] = length
        if length > 0:
            position += cython.cast(cython.Py_ssize_t, length)
    return _find_headers(data, position, end, table, row)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _find(
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    table: cython.longlong[::1],
    row: cython.Py_ssize_t,
    bases: tuple[cython.longlong, cython.longlong, cython.longlong],
) -> tuple[cython.int, cython.Py_ssize_t]:
    """Note the record: (error, position after it). `bases` are offset, timestamp, lowest offset noted."""
    length: cython.longlong
    delta: cython.longlong
    end: cython.Py_ssize_t
    length, position = _length(data, position, data.shape[0], 6)
    if position < 0:
        return cython.cast(cython.int, -position), 0
    end = position + cython.cast(cython.Py_ssize_t, length)
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
    size: cython.Py_ssize_t

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


@cython.cfunc
def _grow(buffer: bytearray, size: cython.Py_ssize_t) -> object:
    """Make the buffer larger. The new part is not cleared: the first touch of its pages is what is dear."""
    if cython.compiled:
        PyByteArray_Resize(buffer, size)
    else:
        buffer.extend(bytes(size - len(buffer)))


@cython.cfunc
def _lengthen(column: object, needed: cython.Py_ssize_t, width: cython.Py_ssize_t) -> object:
    """Have at least so many numbers in the array; it doubles, so that they are moved once or so."""
    if needed > len(column):
        column.frombytes(bytes(width * (2 * needed - len(column))))


@cython.cfunc
def _reserve(column: BinaryColumn, rows: cython.Py_ssize_t, size: cython.Py_ssize_t) -> object:
    """Have room for so many more rows and bytes."""
    _lengthen(column.ends, column.rows + rows + 1, 4)
    missing: cython.Py_ssize_t = (column.rows + rows + 7) // 8 - len(column.bits)
    if missing > 0:
        _grow(column.bits, len(column.bits) + missing + column.rows // 8)
    missing = column.size + size - len(column.data)
    if missing > 0:
        _grow(column.data, len(column.data) + missing + column.size)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _copy(
    source: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    target: cython.uchar[::1],
    position: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
) -> cython.void:
    index: cython.Py_ssize_t
    for index in range(length):
        target[position + index] = source[start + index]


@cython.cfunc
def _fill(
    column: BinaryColumn,
    data: cython.const[cython.uchar][::1],
    table: cython.longlong[::1],
    field: tuple[cython.Py_ssize_t, cython.Py_ssize_t],
    rows: cython.Py_ssize_t,
) -> object:
    """Append a row for each of `rows` starts and lengths in the table, from field[0] on at every field[1]."""
    index: cython.Py_ssize_t
    start: cython.Py_ssize_t
    length: cython.Py_ssize_t
    row: cython.Py_ssize_t = column.rows
    position: cython.Py_ssize_t = 0
    for index in range(rows):
        if table[field[0] + index * field[1] + 1] > 0:
            position += cython.cast(cython.Py_ssize_t, table[field[0] + index * field[1] + 1])
    _reserve(column, rows, position)
    ends: cython.int[::1] = column.ends
    bits: cython.uchar[::1] = column.bits
    target: cython.uchar[::1] = column.data
    position = column.size
    for index in range(rows):
        length = cython.cast(cython.Py_ssize_t, table[field[0] + index * field[1] + 1])
        if row & 7 == 0:
            bits[row >> 3] = 0
        if length >= 0:
            bits[row >> 3] |= 1 << (row & 7)
            start = cython.cast(cython.Py_ssize_t, table[field[0] + index * field[1]])
            _copy(data, start, target, position, length)
            position += length
        else:
            column.nulls += 1
        row += 1
        ends[row] = cython.cast(cython.int, position)
    column.rows = row
    column.size = position


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
    table: cython.longlong[::1]
    header_table: cython.longlong[::1]

    def __init__(self, wanted: frozenset) -> None:
        self.count = self.size = self.position = self.left = self.next_offset = 0
        self.keys = BinaryColumn() if "key" in wanted else None
        self.values = BinaryColumn() if "value" in wanted else None
        self.header_ends = array("i", (0,)) if "headers" in wanted else None
        self.header_names = BinaryColumn()
        self.header_values = BinaryColumn()
        self.offsets = array("q") if "offset" in wanted else None
        self.timestamps = array("q") if "timestamp" in wanted else None
        self.table = array("q", bytes(8 * FIELDS * STEP))
        self.header_table = array("q", bytes(8 * 4 * STEP))

    def append_batch(
        self,
        data: cython.const[cython.uchar][::1],
        position: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        facts: tuple,
        bounds: tuple,
        limits: tuple,
    ) -> int:
        """Append the records of a batch whose offsets are within `bounds`; gives the offset to go on at."""
        state: cython.int = MORE
        rows: cython.Py_ssize_t
        bases: tuple[cython.longlong, cython.longlong] = (facts[0], facts[1])
        last_offset: cython.longlong = bounds[1]
        rows_max: cython.longlong = min(limits[0], INT_MAX - 1)
        bytes_max: cython.longlong = min(limits[1], INT_MAX)
        if position < 0 or count < 0 or bases[0] < 0:
            raise ValueError("a position, count or base offset is negative")
        self.position = position
        self.left = count
        self.next_offset = bounds[0]
        while state == MORE:
            state, rows = _find_some(self, data, bases, last_offset, (rows_max, bytes_max))
            if rows > 0:
                _append(self, data, rows, facts[2])
        if state != ENDED:
            place = max(self.next_offset, bases[0])
            raise ValueError(f"the record at or after offset {place}: {ERRORS[state]}")
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
def _cost(columns: ColumnBuffers, row: cython.Py_ssize_t) -> cython.longlong:
    """The bytes that a found record would add; a header counts as one more, so that they can be numbered."""
    cost: cython.longlong = 0
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
    columns: ColumnBuffers,
    data: cython.const[cython.uchar][::1],
    bases: tuple[cython.longlong, cython.longlong],
    last_offset: cython.longlong,
    limits: tuple[cython.longlong, cython.longlong],
) -> tuple[cython.int, cython.Py_ssize_t]:
    """Find the next records, at most STEP, and stand behind them: (MORE, ENDED or error, rows found)."""
    error: cython.int
    position: cython.Py_ssize_t
    cost: cython.longlong
    rows: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t = 0
    while rows < STEP:
        if columns.left == 0:
            return ENDED if columns.position == data.shape[0] else 6, rows
        if columns.count + rows >= limits[0]:
            return ENDED, rows
        error, position = _find(
            data, columns.position, columns.table, row, (bases[0], bases[1], columns.next_offset)
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
def _fill_numbers(
    columns: ColumnBuffers, column: object, field: cython.Py_ssize_t, rows: cython.Py_ssize_t
) -> object:
    index: cython.Py_ssize_t
    _lengthen(column, columns.count + rows, 8)
    target: cython.longlong[::1] = column
    for index in range(rows):
        target[columns.count + index] = columns.table[index * FIELDS + field]


@cython.cfunc
def _append(
    columns: ColumnBuffers,
    data: cython.const[cython.uchar][::1],
    rows: cython.Py_ssize_t,
    append_time: object,
) -> object:
    """Append the records that were found."""
    index: cython.Py_ssize_t
    if columns.keys is not None:
        _fill(columns.keys, data, columns.table, (KEY, FIELDS), rows)
    if columns.values is not None:
        _fill(columns.values, data, columns.table, (VALUE, FIELDS), rows)
    if columns.header_ends is not None:
        _fill_headers(columns, data, rows)
    if columns.offsets is not None:
        _fill_numbers(columns, columns.offsets, OFFSET, rows)
    if append_time is not None:
        for index in range(TIMESTAMP, rows * FIELDS, FIELDS):
            columns.table[index] = append_time
    if columns.timestamps is not None:
        _fill_numbers(columns, columns.timestamps, TIMESTAMP, rows)
    columns.count += rows


@cython.cfunc
def _fill_headers(
    columns: ColumnBuffers, data: cython.const[cython.uchar][::1], rows: cython.Py_ssize_t
) -> object:
    """Append the headers of the found records, whose lengths were checked when they were found."""
    _: cython.longlong
    row: cython.Py_ssize_t
    field: cython.Py_ssize_t
    position: cython.Py_ssize_t
    length: cython.longlong
    noted: cython.Py_ssize_t = 0
    place: cython.Py_ssize_t = columns.count + 1
    _lengthen(columns.header_ends, place + rows, 4)
    ends: cython.int[::1] = columns.header_ends
    for row in range(0, rows * FIELDS, FIELDS):
        position = cython.cast(cython.Py_ssize_t, columns.table[row + HEADERS])
        for _ in range(columns.table[row + HEADERS + 1]):
            for field in range(0, 4, 2):
                length, position = _varint(data, position, data.shape[0], 32)
                columns.header_table[4 * noted + field] = position
                columns.header_table[4 * noted + field + 1] = length
                if length > 0:
                    position += cython.cast(cython.Py_ssize_t, length)
            noted += 1
            if noted == STEP:
                _fill(columns.header_names, data, columns.header_table, (0, 4), noted)
                _fill(columns.header_values, data, columns.header_table, (2, 4), noted)
                noted = 0
        ends[place] = cython.cast(cython.int, columns.header_names.rows + noted)
        place += 1
    if noted > 0:
        _fill(columns.header_names, data, columns.header_table, (0, 4), noted)
        _fill(columns.header_values, data, columns.header_table, (2, 4), noted)
