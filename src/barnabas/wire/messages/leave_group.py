"""LeaveGroup, key 13, versions 0-5. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 13
VERSIONS = (0, 5)
FLEXIBLE_FROM = 4


class MemberIdentity(Message):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", 3, 5),
        Field("group_instance_id", "string", 3, 5, nullable_from=3),
        Field("reason", "string", 5, 5, nullable_from=5),
    )


class LeaveGroupRequest(Message):
    group_id: str = ""
    members: list[MemberIdentity] = EMPTY
    member_id: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 5),
        Field("members", MemberIdentity, 3, 5, array=True),
        Field("member_id", "string", 0, 2),
    )


class MemberResponse(Message):
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", 3, 5),
        Field("group_instance_id", "string", 3, 5, nullable_from=3),
        Field("error_code", "int16", 3, 5),
    )


class LeaveGroupResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    members: list[MemberResponse] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 5),
        Field("error_code", "int16", 0, 5),
        Field("members", MemberResponse, 3, 5, array=True),
    )


REQUEST = LeaveGroupRequest
RESPONSE = LeaveGroupResponse
