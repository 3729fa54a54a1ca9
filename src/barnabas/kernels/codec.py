# cython: wraparound=False
"""Reads and writes Kafka messages by a plan: a tree that says, for one version, what follows what.

What comes in is hostile until proven otherwise: every length is held against the bytes that remain before
anything is allocated, and whatever is wrong raises WireError. Reading keeps no reference to the frame except
for `records`, which are slices of it. Bounds checks stay on: a mistake here must not become a stray read."""

import struct

import cython

INT = cython.declare(cython.int, 0)
UNSIGNED = cython.declare(cython.int, 1)
STRING = cython.declare(cython.int, 2)
STRUCT = cython.declare(cython.int, 3)
ARRAY = cython.declare(cython.int, 4)
BOOL = cython.declare(cython.int, 5)
UUID = cython.declare(cython.int, 6)
BYTES = cython.declare(cython.int, 7)
RECORDS = cython.declare(cython.int, 8)
FLOAT = cython.declare(cython.int, 9)

# A frame of n bytes may ask for n objects that are each a hundred times larger, hence a cap of its own.
ELEMENTS_MAX = cython.declare(cython.Py_ssize_t, 500_000)
TAGS_MAX = cython.declare(cython.Py_ssize_t, 1000)
FRAME_MAX = cython.declare(cython.longlong, 2**31 - 1)
# Records shorter than this are copied into the chunk before them: a chunk of their own costs more.
COPIED_RECORDS_MAX = cython.declare(cython.Py_ssize_t, 2048)

# Type name: (kind, bytes it takes at least; for strings and bytes the width of the length in old versions).
_TYPES = {
    "int8": (0, 1),
    "int16": (0, 2),
    "int32": (0, 4),
    "int64": (0, 8),
    "uint16": (1, 2),
    "string": (2, 2),
    "struct": (3, 1),
    "bool": (5, 1),
    "uuid": (6, 16),
    "bytes": (7, 4),
    "records": (8, 4),
    "float64": (9, 8),
}
_DOUBLE = struct.Struct(">d")


class WireError(ValueError):
    """The bytes are no message of that type and version, or the message cannot be written as one."""


@cython.cclass
class StructPlan:
    """One struct in one version: its class, its fields in wire order, its tagged fields by tag."""

    cls: object
    fields: tuple
    tagged: tuple
    tags: dict
    absent_arrays: tuple
    flexible: cython.bint
    minimum: cython.Py_ssize_t

    def __init__(self, cls: type, flexible: bool, rows: list, absent_arrays: tuple) -> None:
        """`rows`: (name, type name, struct plan, is array, is nullable, tag or -1, default) per field."""
        plans = [FieldPlan(row, flexible) for row in rows]
        self.cls = cls
        self.flexible = flexible
        self.absent_arrays = absent_arrays
        self.fields = tuple(plan for plan in plans if plan.tag < 0)
        self.tagged = tuple(sorted((plan for plan in plans if plan.tag >= 0), key=_tag_of))
        self.tags = {plan.tag: plan for plan in self.tagged}
        # An empty struct of an old version takes nothing on the wire; counting 1 keeps array lengths bounded.
        self.minimum = max(1, sum([plan.minimum for plan in self.fields]) + flexible)


@cython.cclass
class FieldPlan:
    """One field in one version; for an array, `element` describes what it holds."""

    name = cython.declare(str, visibility="readonly")
    tag = cython.declare(cython.longlong, visibility="readonly")
    minimum = cython.declare(cython.Py_ssize_t, visibility="readonly")
    kind: cython.int
    width: cython.int
    compact: cython.bint
    nullable: cython.bint
    default: object
    struct: StructPlan
    element: object

    def __init__(self, row: tuple, flexible: bool) -> None:
        name, type_name, struct_plan, is_array, is_nullable, tag, default = row
        self.name = name
        self.nullable = is_nullable
        self.tag = tag
        self.default = default
        self.compact = flexible
        self.struct = struct_plan
        self.element = None
        if is_array:
            self.kind, self.width = 4, 4
            self.element = FieldPlan((name, type_name, struct_plan, False, False, -1, None), flexible)
        else:
            self.kind, self.width = _TYPES[type_name]
        if self.kind == STRUCT:
            self.minimum = 1 if is_nullable else struct_plan_minimum(struct_plan)
        elif flexible and (is_array or type_name in ("string", "bytes", "records")):
            self.minimum = 1
        else:
            self.minimum = self.width


def _tag_of(plan: FieldPlan) -> int:
    return plan.tag


@cython.cfunc
def struct_plan_minimum(plan: StructPlan) -> cython.Py_ssize_t:
    return plan.minimum


@cython.cclass
class Reader:
    """A position in one frame. Use once: its budget of array elements is not given back."""

    data: cython.const[cython.uchar][::1]
    view: object
    start: cython.Py_ssize_t
    end: cython.Py_ssize_t
    elements_left: cython.Py_ssize_t

    def __init__(self, frame: object) -> None:
        self.view = memoryview(frame)
        self.data = self.view
        self.start = 0
        self.end = len(self.view)
        self.elements_left = ELEMENTS_MAX

    def request_header(self) -> tuple:
        """(api key, version, correlation id, client id); tagged fields, if the API has them, come next."""
        api_key = _read_int(self, 2)
        version = _read_int(self, 2)
        correlation_id = _read_int(self, 4)
        size = _read_int(self, 2)
        if size < -1:
            raise WireError(f"negative length {size}")
        return api_key, version, correlation_id, None if size < 0 else _read_text(self, size)

    def int32(self) -> int:
        return _read_int(self, 4)

    def skip_tags(self) -> None:
        _read_tags(self, None, None)

    def struct(self, plan: StructPlan) -> object:
        return _read_struct(self, plan)


@cython.cfunc
def _advance(reader: Reader, size: cython.longlong) -> cython.Py_ssize_t:
    """Steps over `size` bytes that must be there; returns where they start."""
    start: cython.Py_ssize_t = reader.start
    if size > reader.end - start:
        raise WireError(f"{size} bytes expected at {start}, {reader.end - start} left")
    reader.start = start + size
    return start


@cython.cfunc
def _read_int(reader: Reader, width: cython.Py_ssize_t) -> cython.longlong:
    start: cython.Py_ssize_t = _advance(reader, width)
    index: cython.Py_ssize_t
    value: cython.longlong = reader.data[start]
    if value > 127:
        value -= 256
    for index in range(start + 1, start + width):
        value = value * 256 + reader.data[index]
    return value


@cython.cfunc
def _read_uvarint(reader: Reader) -> cython.longlong:
    value: cython.longlong = 0
    shift: cython.int = 0
    byte: cython.longlong
    while True:
        byte = reader.data[_advance(reader, 1)]
        # The fifth byte has room for four bits, and a last byte of zero would have been left out.
        if (shift == 28 and byte > 15) or (shift > 0 and byte == 0):
            raise WireError(f"varint out of range or too long before {reader.start}")
        value += (byte & 127) << shift
        if byte < 128:
            return value
        shift += 7


@cython.cfunc
def _read_length(reader: Reader, field: FieldPlan) -> cython.longlong:
    """The length of a string, bytes, records or array; -1 for null."""
    length: cython.longlong
    if field.compact:
        length = _read_uvarint(reader) - 1
    else:
        length = _read_int(reader, field.width)
    if length < 0 and (length < -1 or not field.nullable):
        raise WireError(f"{field.name} has length {length} at {reader.start}")
    return length


@cython.cfunc
def _take(reader: Reader, size: cython.longlong) -> bytes:
    start: cython.Py_ssize_t = _advance(reader, size)
    if size == 0:
        return b""
    if cython.compiled:
        pointer: cython.p_char = cython.cast(cython.p_char, cython.address(reader.data[start]))
        return pointer[:size]
    return bytes(reader.view[start : start + size])


@cython.cfunc
def _read_text(reader: Reader, size: cython.longlong) -> str:
    raw: bytes = _take(reader, size)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WireError(f"string before {reader.start} is not UTF-8: {error.reason}") from None


@cython.cfunc
def _read_value(reader: Reader, field: FieldPlan) -> object:
    kind: cython.int = field.kind
    if kind == INT:
        return _read_int(reader, field.width)
    if kind == STRING or kind >= BYTES:
        return _read_block(reader, field)
    if kind == ARRAY:
        return _read_array(reader, field)
    if kind == STRUCT:
        if field.nullable and not _read_presence(reader, field):
            return None
        return _read_struct(reader, field.struct)
    if kind == BOOL:
        return reader.data[_advance(reader, 1)] != 0
    if kind == UUID:
        return _take(reader, 16)
    return _read_int(reader, 2) & 0xFFFF


@cython.cfunc
def _read_presence(reader: Reader, field: FieldPlan) -> cython.bint:
    marker: cython.longlong = _read_int(reader, 1)
    if marker != 1 and marker != -1:
        raise WireError(f"{field.name} is marked neither null nor present, but {marker}")
    return marker == 1


@cython.cfunc
def _read_block(reader: Reader, field: FieldPlan) -> object:
    """A string, bytes, records or float."""
    if field.kind == FLOAT:
        return _DOUBLE.unpack(_take(reader, 8))[0]
    length: cython.longlong = _read_length(reader, field)
    if length < 0:
        return None
    if field.kind == STRING:
        return _read_text(reader, length)
    if field.kind == BYTES:
        return _take(reader, length)
    start: cython.Py_ssize_t = _advance(reader, length)
    return reader.view[start : start + length]


@cython.cfunc
def _read_array(reader: Reader, field: FieldPlan) -> list:
    length: cython.longlong = _read_length(reader, field)
    _index: cython.longlong
    element: FieldPlan = field.element
    if length < 0:
        return None
    if length > (reader.end - reader.start) // element.minimum:
        raise WireError(f"{field.name} claims {length} elements, {reader.end - reader.start} bytes are left")
    if length > reader.elements_left:
        raise WireError(f"{field.name} exceeds {ELEMENTS_MAX} array elements in one message")
    reader.elements_left -= length
    values: list = []
    for _index in range(length):
        values.append(_read_value(reader, element))
    return values


@cython.cfunc
def _read_struct(reader: Reader, plan: StructPlan) -> object:
    field: FieldPlan
    message: object = plan.cls.__new__(plan.cls)
    for field in plan.fields:
        setattr(message, field.name, _read_value(reader, field))
    for name in plan.absent_arrays:
        setattr(message, name, [])
    if plan.flexible:
        _read_tags(reader, plan, message)
    return message


@cython.cfunc
def _read_tags(reader: Reader, plan: StructPlan | None, message: object) -> cython.bint:
    count: cython.longlong = _read_uvarint(reader)
    tag: cython.longlong
    size: cython.longlong
    _index: cython.longlong
    previous: cython.longlong = -1
    if count > TAGS_MAX or count > (reader.end - reader.start) // 2:
        raise WireError(f"{count} tagged fields, {reader.end - reader.start} bytes are left")
    for _index in range(count):
        tag = _read_uvarint(reader)
        if tag <= previous:
            raise WireError(f"tag {tag} after tag {previous}")
        previous = tag
        size = _read_uvarint(reader)
        field = None if plan is None else plan.tags.get(tag)
        if field is None:
            _advance(reader, size)
        else:
            _read_tagged(reader, field, size, message)
    return True


@cython.cfunc
def _read_tagged(reader: Reader, field: FieldPlan, size: cython.longlong, message: object) -> cython.bint:
    """A tagged field sees only its own `size` bytes, and must use them all."""
    end: cython.Py_ssize_t = reader.end
    if size > end - reader.start:
        raise WireError(f"tag {field.tag} claims {size} bytes, {end - reader.start} are left")
    reader.end = reader.start + size
    setattr(message, field.name, _read_value(reader, field))
    if reader.start != reader.end:
        raise WireError(f"tag {field.tag} leaves {reader.end - reader.start} of {size} bytes unread")
    reader.end = end
    return True


@cython.cclass
class Writer:
    """Grows a frame. Large records and file slices are not copied: they end a chunk and stand between two."""

    out: bytearray
    chunks: list
    size: cython.longlong
    is_inside_tag: cython.bint

    def __init__(self, head: bytes) -> None:
        self.out = bytearray(head)
        self.chunks = []
        self.size = 0
        self.is_inside_tag = False

    def struct(self, plan: StructPlan, message: object) -> None:
        _write_struct(self, plan, message)

    def finish(self) -> list:
        """The chunks in order."""
        _close_chunk(self)
        return self.chunks

    def finish_frame(self) -> list:
        """The chunks in order; the first four bytes of the head become the size of all that follows them."""
        _close_chunk(self)
        size: cython.longlong = self.size - 4
        if size > FRAME_MAX:
            raise WireError(f"a frame of {size} bytes is too large")
        first: bytearray = self.chunks[0]
        first[0] = (size >> 24) & 255
        first[1] = (size >> 16) & 255
        first[2] = (size >> 8) & 255
        first[3] = size & 255
        return self.chunks


@cython.cfunc
def _close_chunk(writer: Writer) -> cython.bint:
    if len(writer.out) > 0:
        writer.chunks.append(writer.out)
        writer.size += len(writer.out)
        writer.out = bytearray()
    return True


@cython.cfunc
def _put_int(out: bytearray, value: cython.longlong, width: cython.int) -> cython.bint:
    shift: cython.int = 8 * (width - 1)
    while shift >= 0:
        out.append((value >> shift) & 255)
        shift -= 8
    return True


@cython.cfunc
def _put_uvarint(out: bytearray, value: cython.longlong) -> cython.bint:
    while value > 127:
        out.append((value & 127) | 128)
        value >>= 7
    out.append(value)
    return True


@cython.cfunc
def _put_length(writer: Writer, field: FieldPlan, length: cython.longlong) -> cython.bint:
    if field.compact:
        if length >= FRAME_MAX:
            raise WireError(f"{field.name} is too long: {length}")
        return _put_uvarint(writer.out, length + 1)
    if length >= (cython.cast(cython.longlong, 1) << (8 * field.width - 1)):
        raise WireError(f"{field.name} is too long: {length}")
    return _put_int(writer.out, length, field.width)


@cython.cfunc
def _write_number(writer: Writer, field: FieldPlan, value: object) -> cython.bint:
    number: cython.longlong = 0
    bits: cython.int = 8 * field.width
    fits: cython.bint = isinstance(value, int) and -(2**63) <= value < 2**63
    if fits:
        number = value
        if field.kind == UNSIGNED:
            fits = 0 <= number <= 0xFFFF
        elif bits < 64:
            limit: cython.longlong = cython.cast(cython.longlong, 1) << (bits - 1)
            fits = -limit <= number < limit
    if not fits:
        raise WireError(f"{field.name} cannot be {value!r}: an integer of {bits} bits is expected")
    return _put_int(writer.out, number, field.width)


@cython.cfunc
def _write_value(writer: Writer, field: FieldPlan, value: object) -> cython.bint:
    kind: cython.int = field.kind
    if kind in (INT, UNSIGNED):
        return _write_number(writer, field, value)
    if value is None:
        return _write_null(writer, field)
    if kind == STRING:
        return _write_text(writer, field, value)
    if kind == ARRAY:
        return _write_array(writer, field, value)
    if kind == STRUCT:
        if field.nullable:
            writer.out.append(1)
        return _write_struct(writer, field.struct, value)
    if kind == BOOL:
        writer.out.append(1 if value else 0)
        return True
    return _write_block(writer, field, value)


@cython.cfunc
def _write_null(writer: Writer, field: FieldPlan) -> cython.bint:
    if field.nullable and field.kind == STRUCT:
        writer.out.append(255)
        return True
    if field.nullable:
        return _put_length(writer, field, -1)
    # Newer versions let some names be null; to older readers no name is the empty one.
    if field.kind == STRING:
        return _put_length(writer, field, 0)
    raise WireError(f"{field.name} cannot be null in this version")


@cython.cfunc
def _write_text(writer: Writer, field: FieldPlan, value: object) -> cython.bint:
    if not isinstance(value, str):
        raise WireError(f"{field.name} cannot be {value!r}: a string is expected")
    try:
        raw: bytes = value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise WireError(f"{field.name} cannot be written as UTF-8: {error.reason}") from None
    _put_length(writer, field, len(raw))
    writer.out += raw
    return True


@cython.cfunc
def _write_block(writer: Writer, field: FieldPlan, value: object) -> cython.bint:
    """A uuid, float, bytes or records."""
    if field.kind == FLOAT:
        writer.out += _DOUBLE.pack(value)
        return True
    if field.kind == RECORDS:
        return _write_records(writer, field, value)
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise WireError(f"{field.name} cannot be {value!r}: bytes are expected")
    if field.kind == UUID:
        if len(value) != 16:
            raise WireError(f"{field.name} has {len(value)} bytes instead of 16")
    else:
        _put_length(writer, field, len(value))
    writer.out += value
    return True


@cython.cfunc
def _write_records(writer: Writer, field: FieldPlan, value: object) -> cython.bint:
    is_bytes: cython.bint = isinstance(value, (bytes, bytearray, memoryview))
    size: cython.longlong = len(value) if is_bytes else value.size
    _put_length(writer, field, size)
    if is_bytes and (writer.is_inside_tag or size <= COPIED_RECORDS_MAX):
        writer.out += value
        return True
    if writer.is_inside_tag:
        raise WireError(f"{field.name} is tagged and cannot be a slice of a file")
    if size > 0:
        _close_chunk(writer)
        writer.chunks.append(value)
        writer.size += size
    return True


@cython.cfunc
def _write_array(writer: Writer, field: FieldPlan, values: object) -> cython.bint:
    element: FieldPlan = field.element
    _put_length(writer, field, len(values))
    for value in values:
        _write_value(writer, element, value)
    return True


@cython.cfunc
def _write_struct(writer: Writer, plan: StructPlan, message: object) -> cython.bint:
    field: FieldPlan
    for field in plan.fields:
        _write_value(writer, field, getattr(message, field.name))
    if plan.flexible:
        _write_tags(writer, plan, message)
    return True


@cython.cfunc
def _write_tags(writer: Writer, plan: StructPlan, message: object) -> cython.bint:
    """Tagged fields are written only when they differ from their default."""
    field: FieldPlan
    written: list = []
    for field in plan.tagged:
        value = getattr(message, field.name)
        if value is not field.default and value != field.default:
            written.append((field, value))
    _put_uvarint(writer.out, len(written))
    for field, value in written:
        _write_tagged(writer, field, value)
    return True


@cython.cfunc
def _write_tagged(writer: Writer, field: FieldPlan, value: object) -> cython.bint:
    outer: bytearray = writer.out
    was_inside_tag: cython.bint = writer.is_inside_tag
    writer.out = bytearray()
    writer.is_inside_tag = True
    _write_value(writer, field, value)
    body: bytearray = writer.out
    writer.out = outer
    writer.is_inside_tag = was_inside_tag
    _put_uvarint(outer, field.tag)
    _put_uvarint(outer, len(body))
    outer += body
    return True
