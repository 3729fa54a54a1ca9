"""The largest frames that an API's schema allows, built from the schema, so that a new API is covered too.

For every array of a request there are frames in which that array is long, and frames in which the outermost
array around it is long and it has one element; with names that exist and are repeated, and with names that
nobody knows."""

import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from barnabas.wire.apis import Api
from barnabas.wire.codec import encode_message
from barnabas.wire.message import Field, Message

STRING_BYTES_MAX = 32_767
BYTES_FIELD_BYTES = 2 * 1024 * 1024
# Names are this long, so that a frame with the most elements has several megabytes.
UNKNOWN_NAME_BYTES = 30


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


def shapes_of(request: type[Message], version: int, elements: int) -> Iterator[Shape]:
    """Every shape of one request with about that many array elements in all."""
    yield Shape("long strings", (), False, False, 0)
    for path in _array_paths(request, version):
        where = ".".join(path)
        yield Shape(f"repeated {where}", path, False, True, elements)
        yield Shape(f"unknown {where}", path, False, False, elements)
        if len(path) > 1:
            yield Shape(f"unknown deep {where}", path, True, False, elements)


def frame_of(api: Api, version: int, shape: Shape, known: Known) -> bytes:
    """The whole frame, its size included, exactly as that version has it."""
    message = _Builder(version, shape, known).message(api.request, 0, on_path=True)
    head = struct.pack(">hhih", api.key, version, 1, -1) + (b"\0" if api.is_flexible(version) else b"")
    body = encode_message(message, version, api.flexible_from)
    return struct.pack(">i", len(head) + len(body)) + head + body


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
            if not self._shape.path and field.name not in _ALWAYS_KNOWN:
                return "x" * STRING_BYTES_MAX
            if field.name in _ALWAYS_KNOWN or (self._shape.is_known and known is not None):
                return known
            return self._unknown() if field.name in self._known.values else None
        if field.type == "uuid":
            return (known or bytes(16)) if self._shape.is_known else self._unknown().encode()[:16]
        if field.type == "bytes":
            return b"" if self._shape.path else bytes(BYTES_FIELD_BYTES)
        if field.name in _PARTITION_FIELDS:
            self._count += 1
            return self._count % self._known.partitions if self._shape.is_known else self._count
        return known

    def _unknown(self) -> str:
        self._count += 1
        return f"{self._count:09d}-{'unknown':x<{UNKNOWN_NAME_BYTES - 10}}"


def _arrays_in(value: Any) -> int:
    """How many array elements are in a value."""
    if isinstance(value, list):
        return len(value) + sum(map(_arrays_in, value))
    if isinstance(value, Message):
        return sum(_arrays_in(getattr(value, name)) for name in value.NAMES)
    return 0


_PARTITION_FIELDS = frozenset({"partition", "partition_index", "partitions", "partition_indexes", "index"})
# Without these the request as a whole is refused before its arrays are looked at.
_ALWAYS_KNOWN = frozenset(
    {"group_id", "protocol_type", "member_id", "client_software_name", "client_software_version"}
)
_NEEDED = frozenset({"partitions", "partition_indexes", "partition_data", "protocols", "configs"})
