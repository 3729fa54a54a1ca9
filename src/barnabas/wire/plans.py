"""Compiles the schema rows of a message into the plan that the codec kernels follow; each is made once."""

from barnabas.kernels.plans import FieldPlan, StructPlan
from barnabas.wire.message import EMPTY, Field, Message

_PLANS: dict[tuple[type[Message], int, bool], StructPlan] = {}


def plan_of(message: type[Message], version: int, flexible: bool) -> StructPlan:
    """The plan by which this message is read and written in this version."""
    key = (message, version, flexible)
    plan = _PLANS.get(key)
    if plan is None:
        rows = [row for row in message.FIELDS if row.first <= version <= row.last]
        fields = [_field_plan(message, row, version, flexible) for row in rows]
        # A tagged field may be left out, so it starts with its default like one the version does not have.
        always_there = {row.name for row in rows if row.tag < 0}
        absent = tuple(item for item in message.DEFAULTS.items() if item[0] not in always_there)
        plan = _PLANS[key] = StructPlan(message, flexible, fields, absent)
    return plan


def _field_plan(message: type[Message], row: Field, version: int, flexible: bool) -> FieldPlan:
    default = message.DEFAULTS[row.name]
    struct = None if isinstance(row.type, str) else plan_of(row.type, version, flexible)
    return FieldPlan(
        row.name,
        row.type if isinstance(row.type, str) else "struct",
        flexible,
        struct=struct,
        is_array=row.array,
        is_nullable=row.nullable_from <= version,
        tag=row.tag,
        default=[] if default is EMPTY else default,
    )
