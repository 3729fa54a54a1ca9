# cython: boundscheck=False, wraparound=False
"""Reads Kafka messages by plans (plans.py), which say what a message looks like in one version.

Frames may be hostile. Every length is checked against the bytes that are left before anything is
allocated, the array elements of a frame are limited, and whatever is wrong raises WireError. A message keeps
no reference to its frame except for `records`, which are slices of it.

Two things are for frames that are valid and long:
- Reader(frame, elements_max) refuses a message as soon as the lengths of its arrays add up to more than that;
  `elements_read` is their sum so far. Elements cost memory: a struct of two bytes becomes an object of 300.
- Reader.struct_in_portions is a generator that reads like struct() and yields now and then, so that an event
  loop can do other work in between.
Equal strings of one long frame are one object, so that a name that is repeated costs the memory of one."""

import struct

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.plans import (
        ARRAY,
        BOOL,
        BYTES,
        FLOAT,
        INT,
        STRING,
        STRING_BYTES_MAX,
        STRUCT,
        UUID,
        FieldPlan,
        StructPlan,
    )
    from cython.cimports.barnabas.kernels.shared import read_number, read_unsigned_varint
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.cpython.unicode import PyUnicode_DecodeUTF8
    from cython.cimports.libc.string import memcpy
else:
    from barnabas.kernels.plans import (
        ARRAY,
        BOOL,
        BYTES,
        FLOAT,
        INT,
        STRING,
        STRING_BYTES_MAX,
        STRUCT,
        UUID,
        FieldPlan,
        StructPlan,
    )
    from barnabas.kernels.shared import read_number, read_unsigned_varint

Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])

ELEMENTS_MAX = 500_000
TAGS_MAX = cython.declare(cython.Py_ssize_t, 1000)
# Frames from this size on remember the strings that they have brought, one for each place in a small table.
LONG_FRAME_BYTES = cython.declare(cython.Py_ssize_t, 1 << 16)
STRINGS_REMEMBERED = cython.declare(cython.Py_ssize_t, 256)
# An element of a portion that is longer than this counts as several.
LONG_ELEMENT_BYTES = cython.declare(cython.Py_ssize_t, 256)
# Bytes that are longer than this are copied in several portions.
PORTION_BYTES = cython.declare(cython.Py_ssize_t, 1 << 19)

_DOUBLE = struct.Struct(">d")


class WireError(ValueError):
    """The bytes are not a message of that type and version, or the message cannot be written as one."""


class TooManyElements(WireError):
    """The arrays of the message have at least `elements` elements, which is more than the reader allows."""

    elements: int = 0


@cython.cclass
class MessageBase:
    """Fields by keyword. It is here because handlers make many, and Python needs 1 µs for each."""

    def __init__(self, **values: object) -> None:
        """The subclass has DEFAULTS, the default of each field, which is a tuple if it is an empty list."""
        defaults: dict = self.DEFAULTS
        given: cython.Py_ssize_t = 0
        for name, default in defaults.items():
            value = values.get(name, defaults)
            if value is not defaults:
                given += 1
            else:
                value = [] if type(default) is tuple else default
            setattr(self, name, value)
        if given < len(values):
            unknown = ", ".join([name for name in values if name not in defaults])
            raise TypeError(f"{type(self).__name__} has no field {unknown}")


@cython.cclass
class Reader:
    """A position in one frame, for one message: its budget of array elements is not given back."""

    view: object
    memory: cython.const[cython.uchar][::1]
    data: Input
    start: cython.Py_ssize_t
    end: cython.Py_ssize_t
    elements_max: cython.Py_ssize_t
    elements_left: cython.Py_ssize_t
    elements_to_pause: cython.Py_ssize_t
    strings: list

    def __init__(self, frame: object, elements_max: cython.Py_ssize_t = ELEMENTS_MAX) -> None:
        self.view = memoryview(frame)
        self.memory = self.view
        self.start = 0
        self.end = len(self.view)
        self.elements_max = self.elements_left = elements_max
        self.elements_to_pause = 0
        self.strings = [None] * STRINGS_REMEMBERED if self.end >= LONG_FRAME_BYTES else None
        if cython.compiled:
            self.data = cython.address(self.memory[0])
        else:
            self.data = self.memory

    @property
    def elements_read(self) -> int:
        """How many array elements the message has so far, in all its arrays together."""
        return self.elements_max - self.elements_left

    def request_header(self) -> tuple:
        """(api key, version, correlation id, client id); tagged fields, if the API has them, come next."""
        api_key = _read_int(self, 2)
        version = _read_int(self, 2)
        correlation_id = _read_int(self, 4)
        size = _read_int(self, 2)
        if size < -1:
            raise WireError(f"the client id has length {size}")
        return api_key, version, correlation_id, None if size < 0 else _read_text(self, size)

    def int32(self) -> int:
        return _read_int(self, 4)

    def skip_tags(self) -> None:
        _read_tags(self, None, None)

    def struct(self, plan: StructPlan) -> object:
        return _read_struct(self, plan)

    def struct_in_portions(self, plan: StructPlan, elements: cython.Py_ssize_t) -> object:
        """A generator that reads the struct, yields after each portion of elements, and returns it."""
        self.elements_to_pause = elements
        return _read_in_portions(self, plan, elements)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _advance(reader: Reader, size: cython.longlong) -> cython.Py_ssize_t:
    """Step over `size` bytes, which must be there; returns where they start. The size is never negative."""
    start: cython.Py_ssize_t = reader.start
    if size > reader.end - start:
        raise WireError(f"expected {size} bytes at position {start}, {reader.end - start} are left")
    reader.start = start + size
    return start


@cython.cfunc
@cython.exceptval(-1, check=True)
def _read_int(reader: Reader, width: cython.int) -> cython.longlong:
    return read_number(reader.data, _advance(reader, width), width)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _read_uvarint(reader: Reader) -> cython.longlong:
    value: cython.longlong
    position: cython.Py_ssize_t
    value, position = read_unsigned_varint(reader.data, reader.start, reader.end)
    if position < 0:
        raise WireError(f"malformed varint at position {reader.start}")
    reader.start = position
    return value


@cython.cfunc
@cython.exceptval(-2, check=False)
def _read_length(reader: Reader, field: FieldPlan) -> cython.longlong:
    """The length of a string, bytes, records or array; -1 for null."""
    length: cython.longlong
    if field.compact:
        length = _read_uvarint(reader) - 1
    else:
        length = _read_int(reader, field.width)
    if length < 0 and (length < -1 or not field.nullable):
        raise WireError(f"{field.name} has length {length} before position {reader.start}")
    return length


@cython.cfunc
def _take(reader: Reader, size: cython.longlong) -> bytes:
    start: cython.Py_ssize_t = _advance(reader, size)
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, reader.data + start), size)
    return bytes(reader.view[start : start + size])


@cython.cfunc
def _read_text(reader: Reader, size: cython.longlong) -> str:
    start: cython.Py_ssize_t = _advance(reader, size)
    text: str
    try:
        if cython.compiled:
            text = PyUnicode_DecodeUTF8(
                cython.cast(cython.p_const_char, reader.data + start), size, cython.NULL
            )
        else:
            text = str(reader.view[start : start + size], "utf-8")
    except UnicodeDecodeError as error:
        raise WireError(f"the string at position {start} is not UTF-8: {error.reason}") from None
    return text if reader.strings is None else _remembered(reader.strings, text)


@cython.cfunc
def _remembered(strings: list, text: str) -> str:
    """The same string as an earlier one of this frame, if that was the last one in its place."""
    place: cython.Py_ssize_t = hash(text) & (STRINGS_REMEMBERED - 1)
    earlier = strings[place]
    if earlier is not None and earlier == text:
        return earlier
    strings[place] = text
    return text


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
@cython.exceptval(-1, check=False)
def _read_presence(reader: Reader, field: FieldPlan) -> cython.int:
    marker: cython.longlong = _read_int(reader, 1)
    # A struct that is null is marked by 0 if it is tagged.
    null: cython.longlong = -1 if field.tag < 0 else 0
    if marker != 1 and marker != null:
        raise WireError(f"{field.name} must be marked as present (1) or null ({null}), not as {marker}")
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
        if length > STRING_BYTES_MAX:
            raise WireError(f"{field.name} has {length} bytes, a string has at most {STRING_BYTES_MAX}")
        return _read_text(reader, length)
    if field.kind == BYTES:
        return _take(reader, length)
    start: cython.Py_ssize_t = _advance(reader, length)
    return reader.view[start : start + length]


@cython.cfunc
@cython.exceptval(-2, check=False)
def _read_array_length(reader: Reader, field: FieldPlan) -> cython.longlong:
    """The length of an array, -1 for null; the frame has room for that many elements."""
    length: cython.longlong = _read_length(reader, field)
    left: cython.Py_ssize_t = reader.end - reader.start
    if length > left // field.element.size_min:
        raise WireError(f"{field.name} claims {length} elements, {left} bytes are left")
    if length > reader.elements_left:
        raise _too_many_elements(reader, field, length)
    if length > 0:
        reader.elements_left -= length
    return length


@cython.cfunc
def _too_many_elements(reader: Reader, field: FieldPlan, length: cython.longlong) -> object:
    error = TooManyElements(f"at {field.name} the message has more than {reader.elements_max} array elements")
    error.elements = reader.elements_max - reader.elements_left + length
    return error


@cython.cfunc
def _read_array(reader: Reader, field: FieldPlan) -> list:
    length: cython.longlong = _read_array_length(reader, field)
    _index: cython.longlong
    element: FieldPlan = field.element
    if length < 0:
        return None
    values: list = []
    for _index in range(length):
        values.append(_read_value(reader, element))
    return values


@cython.cfunc
def _read_struct(reader: Reader, plan: StructPlan) -> object:
    field: FieldPlan
    message: object = plan.new(plan.message_class)
    for field in plan.fields:
        setattr(message, field.name, _read_value(reader, field))
    return _finish_struct(reader, plan, message)


@cython.cfunc
def _finish_struct(reader: Reader, plan: StructPlan, message: object) -> object:
    for name, default in plan.absent:
        setattr(message, name, [] if type(default) is tuple else default)
    if plan.flexible:
        _read_tags(reader, plan, message)
    return message


def _read_in_portions(reader: Reader, plan: StructPlan, elements: cython.Py_ssize_t) -> object:
    field: FieldPlan
    message: object = plan.new(plan.message_class)
    for field in plan.fields:
        if field.kind == ARRAY and (field.element.kind == STRUCT or field.element.kind == STRING):
            value = yield from _read_array_in_portions(reader, field, elements)
        elif field.kind == BYTES:
            value = yield from _read_bytes_in_portions(reader, field)
        else:
            value = _read_value(reader, field)
        setattr(message, field.name, value)
    return _finish_struct(reader, plan, message)


def _read_array_in_portions(reader: Reader, field: FieldPlan, elements: cython.Py_ssize_t) -> object:
    length: cython.longlong = _read_array_length(reader, field)
    left: cython.Py_ssize_t
    start: cython.Py_ssize_t
    _index: cython.longlong
    element: FieldPlan = field.element
    if length < 0:
        return None
    values: list = []
    for _index in range(length):
        left = reader.elements_left
        start = reader.start
        if element.kind == STRUCT and element.struct.has_long_fields:
            value = yield from _read_in_portions(reader, element.struct, elements)
        else:
            value = _read_value(reader, element)
            # The elements of its arrays of numbers count too.
            reader.elements_to_pause -= left - reader.elements_left
        # So do long strings.
        reader.elements_to_pause -= (reader.start - start) // LONG_ELEMENT_BYTES
        values.append(value)
        reader.elements_to_pause -= 1
        if reader.elements_to_pause <= 0:
            yield
            reader.elements_to_pause = elements
    return values


def _read_bytes_in_portions(reader: Reader, field: FieldPlan) -> object:
    length: cython.longlong = _read_length(reader, field)
    start: cython.Py_ssize_t
    copied: cython.Py_ssize_t
    if length < 0:
        return None
    if length <= PORTION_BYTES:
        return _take(reader, length)
    start = _advance(reader, length)
    # Compiled, its content is not set yet, and the system gives it memory as it is filled.
    value: bytes = PyBytes_FromStringAndSize(cython.NULL, length) if cython.compiled else b""
    for copied in range(0, length, PORTION_BYTES):
        size: cython.Py_ssize_t = min(PORTION_BYTES, length - copied)
        if cython.compiled:
            memcpy(PyBytes_AS_STRING(value) + copied, reader.data + start + copied, size)
        else:
            value += bytes(reader.view[start + copied : start + copied + size])
        yield
    return value


@cython.cfunc
@cython.exceptval(-1, check=False)
def _read_tags(reader: Reader, plan: StructPlan | None, message: object) -> cython.int:
    count: cython.longlong = _read_uvarint(reader)
    tag: cython.longlong
    size: cython.longlong
    _index: cython.longlong
    previous: cython.longlong = -1
    if count > TAGS_MAX or count > (reader.end - reader.start) // 2:
        raise WireError(f"{count} tagged fields are too many, {reader.end - reader.start} bytes are left")
    for _index in range(count):
        tag = _read_uvarint(reader)
        if tag <= previous:
            raise WireError(f"tag {tag} comes after tag {previous}")
        previous = tag
        size = _read_uvarint(reader)
        field = None if plan is None else plan.tags.get(tag)
        if field is None:
            _advance(reader, size)
        else:
            _read_tagged(reader, field, size, message)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _read_tagged(reader: Reader, field: FieldPlan, size: cython.longlong, message: object) -> cython.int:
    """A tagged field sees only its own `size` bytes, and must use them all."""
    end: cython.Py_ssize_t = reader.end
    if size > end - reader.start:
        raise WireError(f"tag {field.tag} claims {size} bytes, {end - reader.start} are left")
    reader.end = reader.start + size
    setattr(message, field.name, _read_value(reader, field))
    if reader.start != reader.end:
        raise WireError(f"tag {field.tag} leaves {reader.end - reader.start} of its {size} bytes unread")
    reader.end = end
    return 0
