"""DescribeConfigs, key 32, versions 1-4. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 32
VERSIONS = (1, 4)
FLEXIBLE_FROM = 4


class DescribeConfigsResource(Message):
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", 1, 4),
        Field("resource_name", "string", 1, 4),
        Field("configuration_keys", "string", 1, 4, array=True, nullable_from=1),
    )


class DescribeConfigsRequest(Message):
    resources: list[DescribeConfigsResource] = EMPTY
    include_synonyms: bool = False
    include_documentation: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resources", DescribeConfigsResource, 1, 4, array=True),
        Field("include_synonyms", "bool", 1, 4),
        Field("include_documentation", "bool", 3, 4),
    )


class DescribeConfigsSynonym(Message):
    name: str = ""
    value: str | None = ""
    source: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, 4),
        Field("value", "string", 1, 4, nullable_from=1),
        Field("source", "int8", 1, 4),
    )


class DescribeConfigsResourceResult(Message):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = EMPTY
    config_type: int = 0
    documentation: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, 4),
        Field("value", "string", 1, 4, nullable_from=1),
        Field("read_only", "bool", 1, 4),
        Field("config_source", "int8", 1, 4),
        Field("is_sensitive", "bool", 1, 4),
        Field("synonyms", DescribeConfigsSynonym, 1, 4, array=True),
        Field("config_type", "int8", 3, 4),
        Field("documentation", "string", 3, 4, nullable_from=3),
    )


class DescribeConfigsResult(Message):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1, 4),
        Field("error_message", "string", 1, 4, nullable_from=1),
        Field("resource_type", "int8", 1, 4),
        Field("resource_name", "string", 1, 4),
        Field("configs", DescribeConfigsResourceResult, 1, 4, array=True),
    )


class DescribeConfigsResponse(Message):
    throttle_time_ms: int = 0
    results: list[DescribeConfigsResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 4),
        Field("results", DescribeConfigsResult, 1, 4, array=True),
    )


REQUEST = DescribeConfigsRequest
RESPONSE = DescribeConfigsResponse
