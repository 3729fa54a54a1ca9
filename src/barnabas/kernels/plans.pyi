from collections.abc import Sequence
from typing import Any

TYPES: dict[str, tuple[int, int]]

class FieldPlan:
    def __init__(
        self,
        name: str,
        type_name: str,
        flexible: bool,
        struct: StructPlan | None = None,
        is_array: bool = False,
        is_nullable: bool = False,
        tag: int = -1,
        default: Any = None,
    ) -> None: ...

class StructPlan:
    def __init__(
        self,
        message_class: type,
        flexible: bool,
        fields: Sequence[FieldPlan],
        absent: tuple[tuple[str, Any], ...] = (),
    ) -> None: ...
