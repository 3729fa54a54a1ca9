"""The largest frames that an API's schema allows, built from the schema, so that a new API is covered too.

Frames with the most elements: for every array of a request there are frames in which that array is long, and
frames in which the outermost array around it is long and it has one element; with names that exist and are
repeated, and with names that nobody knows.

Frames with the most bytes: for every array whose elements can be long there is a frame in which they are, all
of them different, and everything around them is known. There are as many elements as a request may have, and
some of their strings are as long as a string may be, because a handler could forget either limit."""

import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from tests.support.raw_calls import batch_of

from barnabas.wire.apis import Api
from barnabas.wire.codec import encode_message
from barnabas.wire.message import Field, Message, values_of

# The default of socket.request.max.bytes. The four bytes of the size do not count.
FRAME_BYTES_MAX = 100 * 1024 * 1024
STRING_BYTES_MAX = 32_767
# The default of max.message.bytes.
BATCH_BYTES_MAX = 1_048_588
BYTES_FIELD_BYTES = 2 * 1024 * 1024
# Names are this long, so that a frame with the most elements has several megabytes.
UNKNOWN_NAME_BYTES = 30
# One in so many long strings of a frame is as long as it may be. The others share what is left.
STRINGS_PER_LONGEST = 50
TYPES_WITHOUT_LIMIT = ("bytes", "records")
# The number in front of each long value, which makes it different from the others.
NUMBER_BYTES = 10
# A tag that no message has.
UNKNOWN_TAG = 9999


class Known(NamedTuple):
    """What exists on the broker: values by field name. `partitions` are those of the topic."""

    values: Mapping[str, Any]
    partitions: int


class Shape(NamedTuple):
    """One way to fill a request. `path` leads to the array that is long, from the outermost field inwards."""

    label: str
    path: tuple[str, ...]
    is_deep: bool
    is_known: bool
    elements: int
    # The fields that make the frame as long as it may be: those of the innermost elements, or the innermost
    # array itself if it has no structs.
    long_fields: tuple[Field, ...] = ()


def shapes_of(request: type[Message], version: int, elements: int) -> Iterator[Shape]:
    """Every shape of one request with about that many array elements in all."""
    yield Shape("long strings", (), False, False, 0)
    for path in _array_paths(request, version):
        where = ".".join(path)
        yield Shape(f"repeated {where}", path, False, True, elements)
        yield Shape(f"unknown {where}", path, False, False, elements)
        if len(path) > 1:
            yield Shape(f"unknown deep {where}", path, True, False, elements)


def long_shapes_of(api: Api, versions: tuple[int, int], elements: int) -> Iterator[tuple[int, Shape]]:
    """The shapes with the most bytes, and the newest version that has any of them."""
    oldest, newest = versions
    for version in range(newest, oldest - 1, -1):
        paths: dict[tuple[str, ...], list[Field]] = {}
        for path, field in _long_fields(api.request, version):
            paths.setdefault(path, []).append(field)
        for path, fields in paths.items():
            label = f"long {'.'.join(path) or fields[0].name}"
            yield version, Shape(label, path, False, True, elements, tuple(fields))
        if paths:
            return
    if api.is_flexible(newest):
        yield newest, UNKNOWN_TAG_SHAPE


def frame_of(api: Api, version: int, shape: Shape, known: Known) -> bytes:
    """The whole frame, its size included, exactly as that version has it."""
    head = struct.pack(">hhih", api.key, version, 1, -1) + (b"\0" if api.is_flexible(version) else b"")
    room = FRAME_BYTES_MAX - len(head)
    builder = _Builder(version, shape, known)
    if shape.long_fields:
        builder = _LongBuilder(version, shape, known, _lengths_to_fill(room, api, version, shape, known))
    body = encode_message(builder.message(api.request, 0, on_path=True), version, api.flexible_from)
    if shape is UNKNOWN_TAG_SHAPE:
        body = _with_unknown_tag(body, room)
    return b"".join((struct.pack(">i", len(head) + len(body)), head, body))


def _with_unknown_tag(body: bytes, room: int) -> bytes:
    """The body of a message without tagged fields, which ends with their number."""
    assert body[-1] == 0
    value = bytes(room - len(body) - 16)
    return b"".join((body[:-1], b"\1", _varint(UNKNOWN_TAG), _varint(len(value)), value))


def _varint(value: int) -> bytes:
    low, high = value & 127, value >> 7
    return bytes([low | 128]) + _varint(high) if high else bytes([low])


def _long_fields(
    cls: type[Message], version: int, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Field]]:
    """The fields that can be long, with the path to the array that they are in. A string alone cannot."""
    for field in _fields(cls, version):
        inner = (*above, field.name) if field.array else above
        if isinstance(field.type, type):
            yield from _long_fields(field.type, version, inner)
        elif field.type in TYPES_WITHOUT_LIMIT or (field.type == "string" and inner):
            yield inner, field


def _array_paths(cls: type[Message], version: int, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in _fields(cls, version):
        is_struct = isinstance(field.type, type)
        if field.array:
            yield (*above, field.name)
        if isinstance(field.type, type) and is_struct:
            yield from _array_paths(field.type, version, (*above, field.name) if field.array else above)


def _fields(cls: type[Message], version: int) -> list[Field]:
    return [field for field in cls.FIELDS if field.first <= version <= field.last]


class _Builder:
    def __init__(self, version: int, shape: Shape, known: Known) -> None:
        self._version = version
        self._shape = shape
        self._known = known
        self._count = 0
        self._has_long_strings = not shape.path and not shape.long_fields

    def message(self, cls: type[Message], depth: int, *, on_path: bool) -> Message:
        values = {}
        for field in _fields(cls, self._version):
            value = self._field(cls, field, depth, on_path)
            if value is not None:
                values[field.name] = value
        return cls(**values)

    def _field(self, cls: type[Message], field: Field, depth: int, on_path: bool) -> Any:
        """The value, or None where the schema's default is used."""
        path = self._shape.path
        is_next = on_path and depth < len(path) and field.name == path[depth]
        if field.array:
            if not is_next:
                return [self._element(field, depth, False)] if field.name in _NEEDED else None
            return self._array(field, depth)
        if isinstance(field.type, type):
            return (
                self.message(field.type, depth, on_path=on_path)
                if field.nullable_from > self._version
                else None
            )
        return self._scalar(field)

    def _array(self, field: Field, depth: int) -> list[Any]:
        path = self._shape.path
        is_last = depth == len(path) - 1
        is_long = depth == 0 if self._shape.is_deep else is_last
        if not is_long:
            return [self._element(field, depth + 1, True)]
        first = self._element(field, depth + 1, True)
        # The number of all elements, including those inside of elements, is the requested one.
        length = (self._shape.elements - len(path)) // (1 + _arrays_in(first))
        if self._shape.is_known and isinstance(field.type, type):
            return [first] * length
        return [first] + [self._element(field, depth + 1, True) for _ in range(length - 1)]

    def _element(self, field: Field, depth: int, on_path: bool) -> Any:
        if isinstance(field.type, type):
            return self.message(field.type, depth, on_path=on_path)
        value = self._scalar(field)
        if field.type == "string" and value is None:
            return "known" if self._shape.is_known else self._unknown()
        return (0 if field.type.startswith(("int", "uint")) else "") if value is None else value

    def _scalar(self, field: Field) -> Any:
        known = self._known.values.get(field.name)
        if field.type == "string":
            if self._has_long_strings and field.name not in _ALWAYS_KNOWN:
                return "x" * STRING_BYTES_MAX
            if field.name in _ALWAYS_KNOWN or (self._shape.is_known and known is not None):
                return known
            return self._unknown() if field.name in self._known.values else None
        if field.type == "uuid":
            return (known or bytes(16)) if self._shape.is_known else self._unknown().encode()[:16]
        if field.type == "bytes":
            return bytes(BYTES_FIELD_BYTES) if self._has_long_strings else b""
        if field.name in _PARTITION_FIELDS:
            self._count += 1
            return self._count % self._known.partitions if self._shape.is_known else self._count
        return known

    def _unknown(self) -> str:
        """A name that is different from all others."""
        self._count += 1
        return f"{self._count:09d}-{'unknown':x<{UNKNOWN_NAME_BYTES - 10}}"


class _Lengths(NamedTuple):
    """How many elements a long array has, and how long their values are. The strings of the first `longest`
    elements have the largest length, and the bytes of the first element are longer than those of others."""

    count: int
    usual_bytes: int
    longest: int = 0
    first_bytes: int = 0

    def of_string(self, number: int) -> int:
        return STRING_BYTES_MAX if number <= self.longest else self.usual_bytes

    def of_bytes(self, number: int) -> int:
        return self.usual_bytes + (self.first_bytes if number == 1 else 0)


def _lengths_to_fill(room: int, api: Api, version: int, shape: Shape, known: Known) -> _Lengths:
    def measured(count: int) -> tuple[int, int]:
        builder = _LongBuilder(version, shape, known, _Lengths(count, NUMBER_BYTES))
        message = builder.message(api.request, 0, on_path=True)
        return len(encode_message(message, version, api.flexible_from)), _arrays_in(message)

    fields = len(shape.long_fields)
    one_bytes, one_elements = measured(1)
    if not shape.path:
        return _Lengths(1, (room - one_bytes) // fields)
    two_bytes, two_elements = measured(2)
    element_bytes = two_bytes - one_bytes
    count = (shape.elements - one_elements) // (two_elements - one_elements) + 1
    types = [field.type for field in shape.long_fields]
    if "records" in types:
        return _Lengths(room // element_bytes, 0)
    # The length in front of a value takes up to four bytes more than that of a short one.
    room -= one_bytes + count * (element_bytes + fields * (4 - NUMBER_BYTES))
    # Half of the frame is bytes of the first element, if there are any.
    first_bytes = room // 2 // max(1, types.count("bytes"))
    strings = types.count("string")
    longest = count // STRINGS_PER_LONGEST // strings
    room -= types.count("bytes") * first_bytes + longest * strings * STRING_BYTES_MAX
    return _Lengths(count, room // (count * fields - longest * strings), longest, first_bytes)


class _LongBuilder(_Builder):
    """Fills the long fields of a shape, and the other fields with what is known."""

    def __init__(self, version: int, shape: Shape, known: Known, lengths: _Lengths) -> None:
        super().__init__(version, shape, known)
        self._lengths = lengths
        # The number of the element that is being made.
        self._number = 1

    def _field(self, cls: type[Message], field: Field, depth: int, on_path: bool) -> Any:
        if not field.array and self._is_long(field, depth, on_path):
            return self._long_value(field)
        return super()._field(cls, field, depth, on_path)

    def _array(self, field: Field, depth: int) -> list[Any]:
        elements = [self._element(field, depth + 1, True)]
        is_long = depth == len(self._shape.path) - 1
        while is_long and self._number < self._lengths.count:
            self._number += 1
            elements.append(self._next_element(elements[0], field))
        return elements

    def _next_element(self, first: Any, field: Field) -> Any:
        """Like the first one, with other long values and another partition."""
        if not isinstance(first, Message):
            return self._long_value(field)
        values = values_of(first) | {each.name: self._long_value(each) for each in self._shape.long_fields}
        for name in _PARTITION_FIELDS & values.keys():
            if isinstance(values[name], int):
                values[name] = self._number % self._known.partitions
        return type(first)(**values)

    def _element(self, field: Field, depth: int, on_path: bool) -> Any:
        if field.array and self._is_long(field, depth, on_path):
            return self._long_value(field)
        return super()._element(field, depth, on_path)

    def _is_long(self, field: Field, depth: int, on_path: bool) -> bool:
        return on_path and depth == len(self._shape.path) and field in self._shape.long_fields

    def _long_value(self, field: Field) -> Any:
        if field.type == "records":
            return _largest_batch()
        fields = self._shape.long_fields
        number = f"{self._number * len(fields) + fields.index(field):0{NUMBER_BYTES}d}"
        if field.type == "string":
            return number.ljust(self._lengths.of_string(self._number), "x")
        return number.encode().ljust(self._lengths.of_bytes(self._number), b"x")


@cache
def _largest_batch() -> memoryview:
    # The lengths in front of a long record and its value take several bytes more.
    return memoryview(batch_of(bytes(BATCH_BYTES_MAX - len(batch_of(b"")) - 8)))


def _arrays_in(value: Any) -> int:
    """How many array elements are in a value."""
    if isinstance(value, list):
        return len(value) + sum(map(_arrays_in, value))
    if isinstance(value, Message):
        return sum(map(_arrays_in, values_of(value).values()))
    return 0


# For an API without a field that can be long: a field of a newer version, which has to be skipped.
UNKNOWN_TAG_SHAPE = Shape("an unknown tagged field", (), False, True, 0)
_PARTITION_FIELDS = frozenset({"partition", "partition_index", "partitions", "partition_indexes", "index"})
# Without these the request as a whole is refused before its arrays are looked at.
_ALWAYS_KNOWN = frozenset(
    {"group_id", "protocol_type", "member_id", "client_software_name", "client_software_version"}
)
_NEEDED = frozenset({"partitions", "partition_indexes", "partition_data", "protocols", "configs"})
