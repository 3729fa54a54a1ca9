"""AlterConfigs, key 33, versions 0-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 33
VERSIONS = (0, 2)
FLEXIBLE_FROM = 2


class AlterableConfig(Message):
    name: str = ""
    value: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 2),
        Field("value", "string", 0, 2, nullable_from=0),
    )


class AlterConfigsResource(Message):
    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", 0, 2),
        Field("resource_name", "string", 0, 2),
        Field("configs", AlterableConfig, 0, 2, array=True),
    )


class AlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = EMPTY
    validate_only: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resources", AlterConfigsResource, 0, 2, array=True),
        Field("validate_only", "bool", 0, 2),
    )


class AlterConfigsResourceResponse(Message):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 2),
        Field("error_message", "string", 0, 2, nullable_from=0),
        Field("resource_type", "int8", 0, 2),
        Field("resource_name", "string", 0, 2),
    )


class AlterConfigsResponse(Message):
    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 2),
        Field("responses", AlterConfigsResourceResponse, 0, 2, array=True),
    )


REQUEST = AlterConfigsRequest
RESPONSE = AlterConfigsResponse
