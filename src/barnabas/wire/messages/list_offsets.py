"""ListOffsets, key 2, versions 1-11. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 2
VERSIONS = (1, 11)
FLEXIBLE_FROM = 6


class ListOffsetsPartition(Message):
    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1, 11),
        Field("current_leader_epoch", "int32", 4, 11),
        Field("timestamp", "int64", 1, 11),
    )


class ListOffsetsTopic(Message):
    name: str = ""
    partitions: list[ListOffsetsPartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, 11),
        Field("partitions", ListOffsetsPartition, 1, 11, array=True),
    )


class ListOffsetsRequest(Message):
    replica_id: int = 0
    isolation_level: int = 0
    topics: list[ListOffsetsTopic] = EMPTY
    timeout_ms: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", 1, 11),
        Field("isolation_level", "int8", 2, 11),
        Field("topics", ListOffsetsTopic, 1, 11, array=True),
        Field("timeout_ms", "int32", 10, 11),
    )


class ListOffsetsPartitionResponse(Message):
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1, 11),
        Field("error_code", "int16", 1, 11),
        Field("timestamp", "int64", 1, 11),
        Field("offset", "int64", 1, 11),
        Field("leader_epoch", "int32", 4, 11),
    )


class ListOffsetsTopicResponse(Message):
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, 11),
        Field("partitions", ListOffsetsPartitionResponse, 1, 11, array=True),
    )


class ListOffsetsResponse(Message):
    throttle_time_ms: int = 0
    topics: list[ListOffsetsTopicResponse] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 2, 11),
        Field("topics", ListOffsetsTopicResponse, 1, 11, array=True),
    )


REQUEST = ListOffsetsRequest
RESPONSE = ListOffsetsResponse
