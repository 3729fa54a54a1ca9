"""DescribeQuorum, key 55, versions 0-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 55
VERSIONS = (0, 2)
FLEXIBLE_FROM = 0


class RequestPartitionData(Message):
    partition_index: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("partition_index", "int32", 0, 2),)


class RequestTopicData(Message):
    topic_name: str = ""
    partitions: list[RequestPartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0, 2),
        Field("partitions", RequestPartitionData, 0, 2, array=True),
    )


class DescribeQuorumRequest(Message):
    topics: list[RequestTopicData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topics", RequestTopicData, 0, 2, array=True),)


class ReplicaState(Message):
    replica_id: int = 0
    replica_directory_id: bytes = bytes(16)
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", 0, 2),
        Field("replica_directory_id", "uuid", 2, 2),
        Field("log_end_offset", "int64", 0, 2),
        Field("last_fetch_timestamp", "int64", 1, 2),
        Field("last_caught_up_timestamp", "int64", 1, 2),
    )


class ResponsePartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: list[ReplicaState] = EMPTY
    observers: list[ReplicaState] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 2),
        Field("error_code", "int16", 0, 2),
        Field("error_message", "string", 2, 2, nullable_from=2),
        Field("leader_id", "int32", 0, 2),
        Field("leader_epoch", "int32", 0, 2),
        Field("high_watermark", "int64", 0, 2),
        Field("current_voters", ReplicaState, 0, 2, array=True),
        Field("observers", ReplicaState, 0, 2, array=True),
    )


class ResponseTopicData(Message):
    topic_name: str = ""
    partitions: list[ResponsePartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0, 2),
        Field("partitions", ResponsePartitionData, 0, 2, array=True),
    )


class Listener(Message):
    name: str = ""
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 2, 2),
        Field("host", "string", 2, 2),
        Field("port", "uint16", 2, 2),
    )


class Node(Message):
    node_id: int = 0
    listeners: list[Listener] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", 2, 2),
        Field("listeners", Listener, 2, 2, array=True),
    )


class DescribeQuorumResponse(Message):
    error_code: int = 0
    error_message: str | None = ""
    topics: list[ResponseTopicData] = EMPTY
    nodes: list[Node] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 2),
        Field("error_message", "string", 2, 2, nullable_from=2),
        Field("topics", ResponseTopicData, 0, 2, array=True),
        Field("nodes", Node, 2, 2, array=True),
    )


REQUEST = DescribeQuorumRequest
RESPONSE = DescribeQuorumResponse
