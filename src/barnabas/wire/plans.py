"""Compiles schema rows into the plans the codec kernels follow; each is made once and kept."""

from collections.abc import Mapping
from typing import Any, TypeVar

from barnabas.kernels.codec import StructPlan
from barnabas.kernels.codec_write import WritePlan
from barnabas.wire.message import EMPTY, Field, Message

_P = TypeVar("_P")
_READ: dict[tuple[type[Message], int, bool], StructPlan] = {}
_WRITE: dict[tuple[type[Message], int, bool], WritePlan] = {}


def read_plan(message: type[Message], version: int, flexible: bool) -> StructPlan:
    key = (message, version, flexible)
    plan = _READ.get(key)
    if plan is None:
        fields = _fields(message, version)
        # A tagged array may be left out, so it starts as an empty list like one the version does not have.
        certain = {field.name for field in fields if field.tag < 0}
        absent_arrays = tuple(name for name in message.ARRAYS if name not in certain)
        parts = {part: read_plan(part, version, flexible) for part in _parts(fields)}
        rows = [_row(message, field, version, parts) for field in fields]
        plan = _READ[key] = StructPlan(message, flexible, rows, absent_arrays)
    return plan


def write_plan(message: type[Message], version: int, flexible: bool) -> WritePlan:
    key = (message, version, flexible)
    plan = _WRITE.get(key)
    if plan is None:
        fields = _fields(message, version)
        parts = {part: write_plan(part, version, flexible) for part in _parts(fields)}
        plan = _WRITE[key] = WritePlan(flexible, [_row(message, field, version, parts) for field in fields])
    return plan


def _fields(message: type[Message], version: int) -> list[Field]:
    return [field for field in message.FIELDS if field.first <= version <= field.last]


def _parts(fields: list[Field]) -> list[type[Message]]:
    return [field.type for field in fields if not isinstance(field.type, str)]


def _row(
    message: type[Message], field: Field, version: int, parts: Mapping[type[Message], _P]
) -> tuple[str, str, _P | None, bool, bool, int, Any]:
    default = getattr(message, field.name)
    if default is EMPTY:
        default = []
    is_nullable = field.nullable_from <= version
    if isinstance(field.type, str):
        return field.name, field.type, None, field.array, is_nullable, field.tag, default
    return field.name, "struct", parts[field.type], field.array, is_nullable, field.tag, default
