"""IncrementalAlterConfigs, key 44, versions 0-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 44
VERSIONS = (0, 1)
FLEXIBLE_FROM = 1


class AlterableConfig(Message):
    name: str = ""
    config_operation: int = 0
    value: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 1),
        Field("config_operation", "int8", 0, 1),
        Field("value", "string", 0, 1, nullable_from=0),
    )


class AlterConfigsResource(Message):
    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", 0, 1),
        Field("resource_name", "string", 0, 1),
        Field("configs", AlterableConfig, 0, 1, array=True),
    )


class IncrementalAlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = EMPTY
    validate_only: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resources", AlterConfigsResource, 0, 1, array=True),
        Field("validate_only", "bool", 0, 1),
    )


class AlterConfigsResourceResponse(Message):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 1),
        Field("error_message", "string", 0, 1, nullable_from=0),
        Field("resource_type", "int8", 0, 1),
        Field("resource_name", "string", 0, 1),
    )


class IncrementalAlterConfigsResponse(Message):
    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 1),
        Field("responses", AlterConfigsResourceResponse, 0, 1, array=True),
    )


REQUEST = IncrementalAlterConfigsRequest
RESPONSE = IncrementalAlterConfigsResponse
