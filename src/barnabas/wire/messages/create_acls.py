"""CreateAcls, key 30, versions 1-3. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 30
VERSIONS = (1, 3)
FLEXIBLE_FROM = 2


class AclCreation(Message):
    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", 1, 3),
        Field("resource_name", "string", 1, 3),
        Field("resource_pattern_type", "int8", 1, 3),
        Field("principal", "string", 1, 3),
        Field("host", "string", 1, 3),
        Field("operation", "int8", 1, 3),
        Field("permission_type", "int8", 1, 3),
    )


class CreateAclsRequest(Message):
    creations: list[AclCreation] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("creations", AclCreation, 1, 3, array=True),)


class AclCreationResult(Message):
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1, 3),
        Field("error_message", "string", 1, 3, nullable_from=1),
    )


class CreateAclsResponse(Message):
    throttle_time_ms: int = 0
    results: list[AclCreationResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 3),
        Field("results", AclCreationResult, 1, 3, array=True),
    )


REQUEST = CreateAclsRequest
RESPONSE = CreateAclsResponse
