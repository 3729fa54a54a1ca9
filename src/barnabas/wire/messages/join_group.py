"""JoinGroup, key 11, versions 0-9. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 11
VERSIONS = (0, 9)
FLEXIBLE_FROM = 6


class JoinGroupRequestProtocol(Message):
    name: str = ""
    metadata: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 9),
        Field("metadata", "bytes", 0, 9),
    )


class JoinGroupRequest(Message):
    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = EMPTY
    reason: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 9),
        Field("session_timeout_ms", "int32", 0, 9),
        Field("rebalance_timeout_ms", "int32", 1, 9),
        Field("member_id", "string", 0, 9),
        Field("group_instance_id", "string", 5, 9, nullable_from=5),
        Field("protocol_type", "string", 0, 9),
        Field("protocols", JoinGroupRequestProtocol, 0, 9, array=True),
        Field("reason", "string", 8, 9, nullable_from=8),
    )


class JoinGroupResponseMember(Message):
    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", 0, 9),
        Field("group_instance_id", "string", 5, 9, nullable_from=5),
        Field("metadata", "bytes", 0, 9),
    )


class JoinGroupResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 2, 9),
        Field("error_code", "int16", 0, 9),
        Field("generation_id", "int32", 0, 9),
        Field("protocol_type", "string", 7, 9, nullable_from=7),
        Field("protocol_name", "string", 0, 9, nullable_from=7),
        Field("leader", "string", 0, 9),
        Field("skip_assignment", "bool", 9, 9),
        Field("member_id", "string", 0, 9),
        Field("members", JoinGroupResponseMember, 0, 9, array=True),
    )


REQUEST = JoinGroupRequest
RESPONSE = JoinGroupResponse
