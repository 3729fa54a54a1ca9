"""DescribeTopicPartitions, key 75, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 75
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class TopicRequest(Message):
    name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("name", "string", 0, 0),)


class Cursor(Message):
    topic_name: str = ""
    partition_index: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0, 0),
        Field("partition_index", "int32", 0, 0),
    )


class DescribeTopicPartitionsRequest(Message):
    topics: list[TopicRequest] = EMPTY
    response_partition_limit: int = 2000
    cursor: Cursor | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", TopicRequest, 0, 0, array=True),
        Field("response_partition_limit", "int32", 0, 0),
        Field("cursor", Cursor, 0, 0, nullable_from=0),
    )


class DescribeTopicPartitionsResponsePartition(Message):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = EMPTY
    isr_nodes: list[int] = EMPTY
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None
    offline_replicas: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 0),
        Field("partition_index", "int32", 0, 0),
        Field("leader_id", "int32", 0, 0),
        Field("leader_epoch", "int32", 0, 0),
        Field("replica_nodes", "int32", 0, 0, array=True),
        Field("isr_nodes", "int32", 0, 0, array=True),
        Field("eligible_leader_replicas", "int32", 0, 0, array=True, nullable_from=0),
        Field("last_known_elr", "int32", 0, 0, array=True, nullable_from=0),
        Field("offline_replicas", "int32", 0, 0, array=True),
    )


class DescribeTopicPartitionsResponseTopic(Message):
    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = bytes(16)
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = EMPTY
    topic_authorized_operations: int = -2147483648

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 0),
        Field("name", "string", 0, 0, nullable_from=0),
        Field("topic_id", "uuid", 0, 0),
        Field("is_internal", "bool", 0, 0),
        Field("partitions", DescribeTopicPartitionsResponsePartition, 0, 0, array=True),
        Field("topic_authorized_operations", "int32", 0, 0),
    )


class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: int = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = EMPTY
    next_cursor: Cursor | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("topics", DescribeTopicPartitionsResponseTopic, 0, 0, array=True),
        Field("next_cursor", Cursor, 0, 0, nullable_from=0),
    )


REQUEST = DescribeTopicPartitionsRequest
RESPONSE = DescribeTopicPartitionsResponse
