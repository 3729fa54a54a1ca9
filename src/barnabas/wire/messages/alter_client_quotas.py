"""AlterClientQuotas, key 49, versions 0-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 49
VERSIONS = (0, 1)
FLEXIBLE_FROM = 1


class EntityData(Message):
    entity_type: str = ""
    entity_name: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", 0, 1),
        Field("entity_name", "string", 0, 1, nullable_from=0),
    )


class OpData(Message):
    key: str = ""
    value: float = 0.0
    remove: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", 0, 1),
        Field("value", "float64", 0, 1),
        Field("remove", "bool", 0, 1),
    )


class RequestEntryData(Message):
    entity: list[EntityData] = EMPTY
    ops: list[OpData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity", EntityData, 0, 1, array=True),
        Field("ops", OpData, 0, 1, array=True),
    )


class AlterClientQuotasRequest(Message):
    entries: list[RequestEntryData] = EMPTY
    validate_only: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entries", RequestEntryData, 0, 1, array=True),
        Field("validate_only", "bool", 0, 1),
    )


class ResponseEntryData(Message):
    error_code: int = 0
    error_message: str | None = ""
    entity: list[EntityData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 1),
        Field("error_message", "string", 0, 1, nullable_from=0),
        Field("entity", EntityData, 0, 1, array=True),
    )


class AlterClientQuotasResponse(Message):
    throttle_time_ms: int = 0
    entries: list[ResponseEntryData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 1),
        Field("entries", ResponseEntryData, 0, 1, array=True),
    )


REQUEST = AlterClientQuotasRequest
RESPONSE = AlterClientQuotasResponse
