"""DescribeAcls, key 29, versions 1-3. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 29
VERSIONS = (1, 3)
FLEXIBLE_FROM = 2


class DescribeAclsRequest(Message):
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type_filter", "int8", 1, 3),
        Field("resource_name_filter", "string", 1, 3, nullable_from=1),
        Field("pattern_type_filter", "int8", 1, 3),
        Field("principal_filter", "string", 1, 3, nullable_from=1),
        Field("host_filter", "string", 1, 3, nullable_from=1),
        Field("operation", "int8", 1, 3),
        Field("permission_type", "int8", 1, 3),
    )


class AclDescription(Message):
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal", "string", 1, 3),
        Field("host", "string", 1, 3),
        Field("operation", "int8", 1, 3),
        Field("permission_type", "int8", 1, 3),
    )


class DescribeAclsResource(Message):
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: list[AclDescription] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", 1, 3),
        Field("resource_name", "string", 1, 3),
        Field("pattern_type", "int8", 1, 3),
        Field("acls", AclDescription, 1, 3, array=True),
    )


class DescribeAclsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 3),
        Field("error_code", "int16", 1, 3),
        Field("error_message", "string", 1, 3, nullable_from=1),
        Field("resources", DescribeAclsResource, 1, 3, array=True),
    )


REQUEST = DescribeAclsRequest
RESPONSE = DescribeAclsResponse
