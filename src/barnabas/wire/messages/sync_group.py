"""SyncGroup, key 14, versions 0-5. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 14
VERSIONS = (0, 5)
FLEXIBLE_FROM = 4


class SyncGroupRequestAssignment(Message):
    member_id: str = ""
    assignment: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", 0, 5),
        Field("assignment", "bytes", 0, 5),
    )


class SyncGroupRequest(Message):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[SyncGroupRequestAssignment] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 5),
        Field("generation_id", "int32", 0, 5),
        Field("member_id", "string", 0, 5),
        Field("group_instance_id", "string", 3, 5, nullable_from=3),
        Field("protocol_type", "string", 5, 5, nullable_from=5),
        Field("protocol_name", "string", 5, 5, nullable_from=5),
        Field("assignments", SyncGroupRequestAssignment, 0, 5, array=True),
    )


class SyncGroupResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 5),
        Field("error_code", "int16", 0, 5),
        Field("protocol_type", "string", 5, 5, nullable_from=5),
        Field("protocol_name", "string", 5, 5, nullable_from=5),
        Field("assignment", "bytes", 0, 5),
    )


REQUEST = SyncGroupRequest
RESPONSE = SyncGroupResponse
