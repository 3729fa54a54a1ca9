"""DeleteAcls, key 31, versions 1-3. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 31
VERSIONS = (1, 3)
FLEXIBLE_FROM = 2


class DeleteAclsFilter(Message):
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


class DeleteAclsRequest(Message):
    filters: list[DeleteAclsFilter] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("filters", DeleteAclsFilter, 1, 3, array=True),)


class DeleteAclsMatchingAcl(Message):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1, 3),
        Field("error_message", "string", 1, 3, nullable_from=1),
        Field("resource_type", "int8", 1, 3),
        Field("resource_name", "string", 1, 3),
        Field("pattern_type", "int8", 1, 3),
        Field("principal", "string", 1, 3),
        Field("host", "string", 1, 3),
        Field("operation", "int8", 1, 3),
        Field("permission_type", "int8", 1, 3),
    )


class DeleteAclsFilterResult(Message):
    error_code: int = 0
    error_message: str | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1, 3),
        Field("error_message", "string", 1, 3, nullable_from=1),
        Field("matching_acls", DeleteAclsMatchingAcl, 1, 3, array=True),
    )


class DeleteAclsResponse(Message):
    throttle_time_ms: int = 0
    filter_results: list[DeleteAclsFilterResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 3),
        Field("filter_results", DeleteAclsFilterResult, 1, 3, array=True),
    )


REQUEST = DeleteAclsRequest
RESPONSE = DeleteAclsResponse
