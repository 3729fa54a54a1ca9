# cython: wraparound=False
"""Writes Kafka messages by a plan that says, for one version, what follows what: codec.py's counterpart.

A value that does not fit its field raises UnwritableError. Large records and slices of files are not copied:
they stand as chunks of their own between the bytes around them."""

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

FRAME_MAX = cython.declare(cython.longlong, 2**31 - 1)
# Records shorter than this are copied into the chunk before them: a chunk of their own costs more.
COPIED_RECORDS_MAX = cython.declare(cython.Py_ssize_t, 2048)

# Type name: (kind, its width; for strings and bytes that of the length in old versions).
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


class UnwritableError(ValueError):
    """The message has a value that its field cannot hold."""


@cython.cclass
class WritePlan:
    """One struct in one version: its fields in wire order, then its tagged fields by tag."""

    fields: tuple
    tagged: tuple
    flexible: cython.bint

    def __init__(self, flexible: bool, rows: list) -> None:
        """`rows`: (name, type name, write plan, is array, is nullable, tag or -1, default) per field."""
        plans = [FieldPlan(row, flexible) for row in rows]
        self.flexible = flexible
        self.fields = tuple([plan for plan in plans if plan.tag < 0])
        self.tagged = tuple(sorted([plan for plan in plans if plan.tag >= 0], key=_tag_of))


@cython.cclass
class FieldPlan:
    """One field in one version; for an array, `element` describes what it holds."""

    name = cython.declare(str, visibility="readonly")
    tag = cython.declare(cython.longlong, visibility="readonly")
    kind: cython.int
    width: cython.int
    compact: cython.bint
    nullable: cython.bint
    default: object
    struct: WritePlan
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


def _tag_of(plan: FieldPlan) -> int:
    return plan.tag


@cython.cclass
class Writer:
    """A frame that grows, as chunks."""

    out: bytearray
    chunks: list
    size: cython.longlong
    is_inside_tag: cython.bint

    def __init__(self, head: bytes) -> None:
        self.out = bytearray(head)
        self.chunks = []
        self.size = 0
        self.is_inside_tag = False

    def struct(self, plan: WritePlan, message: object) -> None:
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
            raise UnwritableError(f"a frame of {size} bytes is too large")
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
            raise UnwritableError(f"{field.name} is too long: {length}")
        return _put_uvarint(writer.out, length + 1)
    if length >= (cython.cast(cython.longlong, 1) << (8 * field.width - 1)):
        raise UnwritableError(f"{field.name} is too long: {length}")
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
        raise UnwritableError(f"{field.name} cannot be {value!r}: an integer of {bits} bits is expected")
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
        writer.out.append(255 if field.tag < 0 else 0)
        return True
    if field.nullable:
        return _put_length(writer, field, -1)
    # Newer versions let some names be null; to older readers no name is the empty one.
    if field.kind == STRING:
        return _put_length(writer, field, 0)
    raise UnwritableError(f"{field.name} cannot be null in this version")


@cython.cfunc
def _write_text(writer: Writer, field: FieldPlan, value: object) -> cython.bint:
    if not isinstance(value, str):
        raise UnwritableError(f"{field.name} cannot be {value!r}: a string is expected")
    try:
        raw: bytes = value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnwritableError(f"{field.name} cannot be written as UTF-8: {error.reason}") from None
    _put_length(writer, field, len(raw))
    writer.out += raw
    return True


@cython.cfunc
def _write_block(writer: Writer, field: FieldPlan, value: object) -> cython.bint:
    """A uuid, float, bytes or records."""
    if field.kind == FLOAT:
        if not isinstance(value, (float, int)):
            raise UnwritableError(f"{field.name} cannot be {value!r}: a number is expected")
        writer.out += _DOUBLE.pack(value)
        return True
    if field.kind == RECORDS:
        return _write_records(writer, field, value)
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise UnwritableError(f"{field.name} cannot be {value!r}: bytes are expected")
    if field.kind == UUID:
        if len(value) != 16:
            raise UnwritableError(f"{field.name} has {len(value)} bytes instead of 16")
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
        raise UnwritableError(f"{field.name} is tagged and cannot be a slice of a file")
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
def _write_struct(writer: Writer, plan: WritePlan, message: object) -> cython.bint:
    field: FieldPlan
    for field in plan.fields:
        _write_value(writer, field, getattr(message, field.name))
    if plan.flexible:
        _write_tags(writer, plan, message)
    return True


@cython.cfunc
def _write_tags(writer: Writer, plan: WritePlan, message: object) -> cython.bint:
    """Tagged fields are written only when they differ from their default. Of a struct that is never null:
    who reads a message without it has an empty one."""
    field: FieldPlan
    if len(plan.tagged) == 0:
        writer.out.append(0)
        return True
    written: list = []
    for field in plan.tagged:
        value = getattr(message, field.name)
        is_null_struct: cython.bint = value is None and field.kind == STRUCT
        if is_null_struct or (value is not field.default and value != field.default):
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
