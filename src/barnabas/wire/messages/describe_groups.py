"""DescribeGroups, key 15, versions 0-6. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 15
VERSIONS = (0, 6)
FLEXIBLE_FROM = 5


class DescribeGroupsRequest(Message):
    groups: list[str] = EMPTY
    include_authorized_operations: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("groups", "string", 0, 6, array=True),
        Field("include_authorized_operations", "bool", 3, 6),
    )


class DescribedGroupMember(Message):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", 0, 6),
        Field("group_instance_id", "string", 4, 6, nullable_from=4),
        Field("client_id", "string", 0, 6),
        Field("client_host", "string", 0, 6),
        Field("member_metadata", "bytes", 0, 6),
        Field("member_assignment", "bytes", 0, 6),
    )


class DescribedGroup(Message):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = EMPTY
    authorized_operations: int = -2147483648

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 6),
        Field("error_message", "string", 6, 6, nullable_from=6),
        Field("group_id", "string", 0, 6),
        Field("group_state", "string", 0, 6),
        Field("protocol_type", "string", 0, 6),
        Field("protocol_data", "string", 0, 6),
        Field("members", DescribedGroupMember, 0, 6, array=True),
        Field("authorized_operations", "int32", 3, 6),
    )


class DescribeGroupsResponse(Message):
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 6),
        Field("groups", DescribedGroup, 0, 6, array=True),
    )


REQUEST = DescribeGroupsRequest
RESPONSE = DescribeGroupsResponse
