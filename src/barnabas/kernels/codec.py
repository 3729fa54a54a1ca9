# cython: wraparound=False
"""Reads Kafka messages by a plan: a tree that says, for one version, what follows what on the wire.

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
class MessageBase:
    """Fields by keyword. It is here because handlers make one per partition, and Python took 1 µs for it."""

    def __init__(self, **values: object) -> None:
        """NAMES and ARRAYS are the subclass's: its fields, and those that start as an empty list."""
        names: frozenset = self.NAMES
        for name in values:
            if name not in names:
                raise TypeError(f"{type(self).__name__} has no field {name}")
        for name in self.ARRAYS:
            if name not in values:
                values[name] = []
        self.__dict__ = values


@cython.cclass
class StructPlan:
    """One struct in one version: its class, its fields in wire order, its tagged fields by tag."""

    cls: object
    new: object
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
        self.new = cls.__new__
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


# _advance has just proved these indexes; everywhere else the check stays.
@cython.cfunc
@cython.boundscheck(False)
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
    # Tagged, null is marked by 0.
    null: cython.longlong = -1 if field.tag < 0 else 0
    if marker != 1 and marker != null:
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
    # One dict made the object's own: handlers then read its attributes twice as fast as after setattr.
    values: dict = {}
    for field in plan.fields:
        values[field.name] = _read_value(reader, field)
    for name in plan.absent_arrays:
        values[name] = []
    if plan.flexible:
        _read_tags(reader, plan, values)
    message: object = plan.new(plan.cls)
    message.__dict__ = values
    return message


@cython.cfunc
def _read_tags(reader: Reader, plan: StructPlan | None, values: dict | None) -> cython.bint:
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
            _read_tagged(reader, field, size, values)
    return True


@cython.cfunc
def _read_tagged(reader: Reader, field: FieldPlan, size: cython.longlong, values: dict) -> cython.bint:
    """A tagged field sees only its own `size` bytes, and must use them all."""
    end: cython.Py_ssize_t = reader.end
    if size > end - reader.start:
        raise WireError(f"tag {field.tag} claims {size} bytes, {end - reader.start} are left")
    reader.end = reader.start + size
    values[field.name] = _read_value(reader, field)
    if reader.start != reader.end:
        raise WireError(f"tag {field.tag} leaves {reader.end - reader.start} of {size} bytes unread")
    reader.end = end
    return True
