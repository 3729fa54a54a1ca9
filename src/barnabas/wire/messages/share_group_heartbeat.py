"""ShareGroupHeartbeat, key 76, versions 1-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 76
VERSIONS = (1, 1)
FLEXIBLE_FROM = 1


class ShareGroupHeartbeatRequest(Message):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 1, 1),
        Field("member_id", "string", 1, 1),
        Field("member_epoch", "int32", 1, 1),
        Field("rack_id", "string", 1, 1, nullable_from=1),
        Field("subscribed_topic_names", "string", 1, 1, array=True, nullable_from=1),
    )


class TopicPartitions(Message):
    topic_id: bytes = bytes(16)
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 1, 1),
        Field("partitions", "int32", 1, 1, array=True),
    )


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topic_partitions", TopicPartitions, 1, 1, array=True),)


class ShareGroupHeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 1),
        Field("error_code", "int16", 1, 1),
        Field("error_message", "string", 1, 1, nullable_from=1),
        Field("member_id", "string", 1, 1, nullable_from=1),
        Field("member_epoch", "int32", 1, 1),
        Field("heartbeat_interval_ms", "int32", 1, 1),
        Field("assignment", Assignment, 1, 1, nullable_from=1),
    )


REQUEST = ShareGroupHeartbeatRequest
RESPONSE = ShareGroupHeartbeatResponse
