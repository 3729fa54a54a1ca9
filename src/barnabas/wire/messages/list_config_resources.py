"""ListConfigResources, key 74, versions 0-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 74
VERSIONS = (0, 1)
FLEXIBLE_FROM = 0


class ListConfigResourcesRequest(Message):
    resource_types: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("resource_types", "int8", 1, 1, array=True),)


class ConfigResource(Message):
    resource_name: str = ""
    resource_type: int = 16

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_name", "string", 0, 1),
        Field("resource_type", "int8", 1, 1),
    )


class ListConfigResourcesResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: list[ConfigResource] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 1),
        Field("error_code", "int16", 0, 1),
        Field("config_resources", ConfigResource, 0, 1, array=True),
    )


REQUEST = ListConfigResourcesRequest
RESPONSE = ListConfigResourcesResponse
