# cython: wraparound=False
"""Writes Kafka messages by plans (plans.py), which say what a message looks like in one version.

A value that does not fit its field raises UnwritableError. Large records and slices of files are not copied:
each is a chunk of its own between the bytes around it.

Writer.struct_in_portions is for long messages: a generator that writes like struct() and yields now and then,
so that an event loop can do other work in between. It takes the structs that it has written out of their
lists: to free all of a long message at its end would take as long as to write it."""

import struct

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.plans import (
        ARRAY,
        BOOL,
        FLOAT,
        INT,
        RECORDS,
        STRING,
        STRING_BYTES_MAX,
        STRUCT,
        UNSIGNED,
        UUID,
        FieldPlan,
        StructPlan,
    )
    from cython.cimports.barnabas.kernels.shared import append_number, append_unsigned_varint
else:
    from barnabas.kernels.plans import (
        ARRAY,
        BOOL,
        FLOAT,
        INT,
        RECORDS,
        STRING,
        STRING_BYTES_MAX,
        STRUCT,
        UNSIGNED,
        UUID,
        FieldPlan,
        StructPlan,
    )
    from barnabas.kernels.shared import append_number, append_unsigned_varint

FRAME_MAX = cython.declare(cython.longlong, 2**31 - 1)
# Records shorter than this are copied into the chunk before them: a chunk of their own costs more.
COPIED_RECORDS_MAX = cython.declare(cython.Py_ssize_t, 2048)
# Bytes that are longer than this have a chunk of their own: to copy them would take long.
COPIED_BYTES_MAX = cython.declare(cython.Py_ssize_t, 1 << 16)
# A long message is written into several chunks: growing one by reallocation would copy all of it again.
CHUNK_BYTES = cython.declare(cython.Py_ssize_t, 1 << 20)
# An element of a portion that is longer than this counts as several.
LONG_ELEMENT_BYTES = cython.declare(cython.Py_ssize_t, 256)

_DOUBLE = struct.Struct(">d")


class UnwritableError(ValueError):
    """The message has a value that its field cannot hold."""


@cython.cclass
class Writer:
    """A frame that grows, as chunks."""

    out: bytearray
    chunks: list
    size: cython.longlong
    is_inside_tag: cython.bint
    elements_to_pause: cython.Py_ssize_t

    def __init__(self, head: bytes) -> None:
        self.out = bytearray(head)
        self.chunks = []
        self.size = 0
        self.is_inside_tag = False
        self.elements_to_pause = 0

    def struct(self, plan: StructPlan, message: object) -> None:
        _write_struct(self, plan, message)

    def struct_in_portions(self, plan: StructPlan, message: object, elements: cython.Py_ssize_t) -> object:
        """A generator that writes the struct and yields after each portion of array elements.

        The arrays of structs contain None instead of structs afterwards."""
        self.elements_to_pause = elements
        return _write_in_portions(self, plan, message, elements)

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
@cython.exceptval(-1, check=False)
def _close_chunk(writer: Writer) -> cython.int:
    if len(writer.out) > 0:
        writer.chunks.append(writer.out)
        writer.size += len(writer.out)
        writer.out = bytearray()
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _put_length(writer: Writer, field: FieldPlan, length: cython.longlong) -> cython.int:
    if field.compact:
        if length >= FRAME_MAX:
            raise UnwritableError(f"{field.name} is too long: {length}")
        return append_unsigned_varint(writer.out, length + 1)
    if length >= (cython.cast(cython.longlong, 1) << (8 * field.width - 1)):
        raise UnwritableError(f"{field.name} is too long: {length}")
    return append_number(writer.out, field.width, length)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _write_number(writer: Writer, field: FieldPlan, value: object) -> cython.int:
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
    return append_number(writer.out, field.width, number)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _write_value(writer: Writer, field: FieldPlan, value: object) -> cython.int:
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
        return 0
    return _write_block(writer, field, value)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _write_null(writer: Writer, field: FieldPlan) -> cython.int:
    if field.nullable and field.kind == STRUCT:
        writer.out.append(255 if field.tag < 0 else 0)
        return 0
    if field.nullable:
        return _put_length(writer, field, -1)
    # Newer versions let some names be null; to older readers no name is the empty one.
    if field.kind == STRING:
        return _put_length(writer, field, 0)
    raise UnwritableError(f"{field.name} cannot be null in this version")


@cython.cfunc
@cython.exceptval(-1, check=False)
def _write_text(writer: Writer, field: FieldPlan, value: object) -> cython.int:
    if not isinstance(value, str):
        raise UnwritableError(f"{field.name} cannot be {value!r}: a string is expected")
    try:
        raw: bytes = value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnwritableError(f"{field.name} cannot be written as UTF-8: {error.reason}") from None
    if len(raw) > STRING_BYTES_MAX:
        raise UnwritableError(f"{field.name} has {len(raw)} bytes, a string has at most {STRING_BYTES_MAX}")
    _put_length(writer, field, len(raw))
    writer.out += raw
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _write_block(writer: Writer, field: FieldPlan, value: object) -> cython.int:
    """A uuid, float, bytes or records."""
    if field.kind == FLOAT:
        if not isinstance(value, (float, int)):
            raise UnwritableError(f"{field.name} cannot be {value!r}: a number is expected")
        writer.out += _DOUBLE.pack(value)
        return 0
    if field.kind == RECORDS:
        return _write_records(writer, field, value)
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise UnwritableError(f"{field.name} cannot be {value!r}: bytes are expected")
    if field.kind == UUID:
        if len(value) != 16:
            raise UnwritableError(f"{field.name} has {len(value)} bytes instead of 16")
    else:
        _put_length(writer, field, len(value))
        # Only what nobody can change before it is sent.
        if len(value) > COPIED_BYTES_MAX and isinstance(value, bytes) and not writer.is_inside_tag:
            return _add_chunk(writer, value, len(value))
    writer.out += value
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _add_chunk(writer: Writer, value: object, size: cython.longlong) -> cython.int:
    """Make the value a chunk of its own, without a copy."""
    _close_chunk(writer)
    writer.chunks.append(value)
    writer.size += size
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _write_records(writer: Writer, field: FieldPlan, value: object) -> cython.int:
    is_bytes: cython.bint = isinstance(value, (bytes, bytearray, memoryview))
    size: cython.longlong = len(value) if is_bytes else value.size
    _put_length(writer, field, size)
    if is_bytes and (writer.is_inside_tag or size <= COPIED_RECORDS_MAX):
        writer.out += value
        return 0
    if writer.is_inside_tag:
        raise UnwritableError(f"{field.name} is tagged and cannot be a slice of a file")
    return _add_chunk(writer, value, size) if size > 0 else 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _write_array(writer: Writer, field: FieldPlan, values: object) -> cython.int:
    element: FieldPlan = field.element
    _put_length(writer, field, len(values))
    for value in values:
        _write_value(writer, element, value)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _write_struct(writer: Writer, plan: StructPlan, message: object) -> cython.int:
    field: FieldPlan
    for field in plan.fields:
        _write_value(writer, field, getattr(message, field.name))
    if plan.flexible:
        _write_tags(writer, plan, message)
    return 0


def _write_in_portions(
    writer: Writer, plan: StructPlan, message: object, elements: cython.Py_ssize_t
) -> object:
    field: FieldPlan
    for field in plan.fields:
        value = getattr(message, field.name)
        if value is not None and field.kind == ARRAY and field.element.kind == STRUCT:
            yield from _write_structs_in_portions(writer, field, value, elements)
        elif value is not None and field.kind == ARRAY and field.element.kind == STRING:
            yield from _write_strings_in_portions(writer, field, value, elements)
        else:
            _write_value(writer, field, value)
    if plan.flexible:
        _write_tags(writer, plan, message)


def _write_structs_in_portions(
    writer: Writer, field: FieldPlan, messages: object, elements: cython.Py_ssize_t
) -> object:
    plan: StructPlan = field.element.struct
    index: cython.Py_ssize_t
    start: cython.longlong
    _put_length(writer, field, len(messages))
    for index in range(len(messages)):
        message = messages[index]
        messages[index] = None
        start = _position(writer)
        if plan.has_long_fields:
            yield from _write_in_portions(writer, plan, message, elements)
        else:
            _write_struct(writer, plan, message)
        if _is_portion_full(writer, start):
            yield
            writer.elements_to_pause = elements


def _write_strings_in_portions(
    writer: Writer, field: FieldPlan, strings: object, elements: cython.Py_ssize_t
) -> object:
    """The strings stay in their list, which may belong to somebody else."""
    start: cython.longlong
    _put_length(writer, field, len(strings))
    for text in strings:
        start = _position(writer)
        _write_text(writer, field.element, text)
        if _is_portion_full(writer, start):
            yield
            writer.elements_to_pause = elements


@cython.cfunc
@cython.exceptval(-1, check=False)
def _position(writer: Writer) -> cython.longlong:
    return writer.size + len(writer.out)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_portion_full(writer: Writer, start: cython.longlong) -> cython.int:
    """Count an element that began at this position. Long ones count as several."""
    writer.elements_to_pause -= 1 + (_position(writer) - start) // LONG_ELEMENT_BYTES
    if writer.elements_to_pause > 0:
        return 0
    if len(writer.out) > CHUNK_BYTES:
        _close_chunk(writer)
    return 1


@cython.cfunc
@cython.exceptval(-1, check=False)
def _write_tags(writer: Writer, plan: StructPlan, message: object) -> cython.int:
    """Tagged fields are written only when they differ from their default. Of a struct that is never null:
    who reads a message without it has an empty one."""
    field: FieldPlan
    if len(plan.tagged) == 0:
        writer.out.append(0)
        return 0
    written: list = []
    for field in plan.tagged:
        value = getattr(message, field.name)
        is_null_struct: cython.bint = value is None and field.kind == STRUCT
        if is_null_struct or (value is not field.default and value != field.default):
            written.append((field, value))
    append_unsigned_varint(writer.out, len(written))
    for field, value in written:
        _write_tagged(writer, field, value)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _write_tagged(writer: Writer, field: FieldPlan, value: object) -> cython.int:
    outer: bytearray = writer.out
    was_inside_tag: cython.bint = writer.is_inside_tag
    writer.out = bytearray()
    writer.is_inside_tag = True
    _write_value(writer, field, value)
    body: bytearray = writer.out
    writer.out = outer
    writer.is_inside_tag = was_inside_tag
    append_unsigned_varint(outer, field.tag)
    append_unsigned_varint(outer, len(body))
    outer += body
    return 0
