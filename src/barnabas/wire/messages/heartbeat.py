"""Heartbeat, key 12, versions 0-4. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import Field, Message

API_KEY = 12
VERSIONS = (0, 4)
FLEXIBLE_FROM = 4


class HeartbeatRequest(Message):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 4),
        Field("generation_id", "int32", 0, 4),
        Field("member_id", "string", 0, 4),
        Field("group_instance_id", "string", 3, 4, nullable_from=3),
    )


class HeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 4),
        Field("error_code", "int16", 0, 4),
    )


REQUEST = HeartbeatRequest
RESPONSE = HeartbeatResponse
