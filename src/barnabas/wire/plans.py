"""Compiles schema rows into the plans the codec kernel follows; each is made once and kept."""

from typing import Any

from barnabas.kernels.codec import StructPlan
from barnabas.wire.message import EMPTY, Field, Message

Row = tuple[str, str, StructPlan | None, bool, bool, int, Any]


_PLANS: dict[tuple[type[Message], int, bool], StructPlan] = {}


def plan_of(message: type[Message], version: int, flexible: bool) -> StructPlan:
    key = (message, version, flexible)
    plan = _PLANS.get(key)
    if plan is None:
        plan = _PLANS[key] = compile_plan(message, version, flexible)
    return plan


def compile_plan(message: type[Message], version: int, flexible: bool) -> StructPlan:
    fields = [field for field in message.FIELDS if field.first <= version <= field.last]
    # A tagged array may be left out, so it starts as an empty list like one the version does not have.
    certain = {field.name for field in fields if field.tag < 0}
    absent_arrays = tuple(name for name in message.ARRAYS if name not in certain)
    return StructPlan(
        message, flexible, [_row(message, field, version, flexible) for field in fields], absent_arrays
    )


def _row(message: type[Message], field: Field, version: int, flexible: bool) -> Row:
    default = getattr(message, field.name)
    if default is EMPTY:
        default = []
    is_nullable = field.nullable_from <= version
    if isinstance(field.type, str):
        return field.name, field.type, None, field.array, is_nullable, field.tag, default
    struct = plan_of(field.type, version, flexible)
    return field.name, "struct", struct, field.array, is_nullable, field.tag, default
