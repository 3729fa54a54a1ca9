"""ConsumerGroupHeartbeat, key 68, versions 0-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 68
VERSIONS = (0, 1)
FLEXIBLE_FROM = 0


class TopicPartitions(Message):
    topic_id: bytes = bytes(16)
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0, 1),
        Field("partitions", "int32", 0, 1, array=True),
    )


class ConsumerGroupHeartbeatRequest(Message):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 1),
        Field("member_id", "string", 0, 1),
        Field("member_epoch", "int32", 0, 1),
        Field("instance_id", "string", 0, 1, nullable_from=0),
        Field("rack_id", "string", 0, 1, nullable_from=0),
        Field("rebalance_timeout_ms", "int32", 0, 1),
        Field("subscribed_topic_names", "string", 0, 1, array=True, nullable_from=0),
        Field("subscribed_topic_regex", "string", 1, 1, nullable_from=1),
        Field("server_assignor", "string", 0, 1, nullable_from=0),
        Field("topic_partitions", TopicPartitions, 0, 1, array=True, nullable_from=0),
    )


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topic_partitions", TopicPartitions, 0, 1, array=True),)


class ConsumerGroupHeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 1),
        Field("error_code", "int16", 0, 1),
        Field("error_message", "string", 0, 1, nullable_from=0),
        Field("member_id", "string", 0, 1, nullable_from=0),
        Field("member_epoch", "int32", 0, 1),
        Field("heartbeat_interval_ms", "int32", 0, 1),
        Field("assignment", Assignment, 0, 1, nullable_from=0),
    )


REQUEST = ConsumerGroupHeartbeatRequest
RESPONSE = ConsumerGroupHeartbeatResponse
