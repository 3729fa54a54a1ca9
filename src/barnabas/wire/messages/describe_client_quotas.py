"""DescribeClientQuotas, key 48, versions 0-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 48
VERSIONS = (0, 1)
FLEXIBLE_FROM = 1


class ComponentData(Message):
    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", 0, 1),
        Field("match_type", "int8", 0, 1),
        Field("match", "string", 0, 1, nullable_from=0),
    )


class DescribeClientQuotasRequest(Message):
    components: list[ComponentData] = EMPTY
    strict: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("components", ComponentData, 0, 1, array=True),
        Field("strict", "bool", 0, 1),
    )


class EntityData(Message):
    entity_type: str = ""
    entity_name: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", 0, 1),
        Field("entity_name", "string", 0, 1, nullable_from=0),
    )


class ValueData(Message):
    key: str = ""
    value: float = 0.0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", 0, 1),
        Field("value", "float64", 0, 1),
    )


class EntryData(Message):
    entity: list[EntityData] = EMPTY
    values: list[ValueData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity", EntityData, 0, 1, array=True),
        Field("values", ValueData, 0, 1, array=True),
    )


class DescribeClientQuotasResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 1),
        Field("error_code", "int16", 0, 1),
        Field("error_message", "string", 0, 1, nullable_from=0),
        Field("entries", EntryData, 0, 1, array=True, nullable_from=0),
    )


REQUEST = DescribeClientQuotasRequest
RESPONSE = DescribeClientQuotasResponse
