"""DescribeShareGroupOffsets, key 90, versions 0-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 90
VERSIONS = (0, 1)
FLEXIBLE_FROM = 0


class DescribeShareGroupOffsetsRequestTopic(Message):
    topic_name: str = ""
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0, 1),
        Field("partitions", "int32", 0, 1, array=True),
    )


class DescribeShareGroupOffsetsRequestGroup(Message):
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 1),
        Field("topics", DescribeShareGroupOffsetsRequestTopic, 0, 1, array=True, nullable_from=0),
    )


class DescribeShareGroupOffsetsRequest(Message):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("groups", DescribeShareGroupOffsetsRequestGroup, 0, 1, array=True),
    )


class DescribeShareGroupOffsetsResponsePartition(Message):
    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: int = 0
    error_message: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 1),
        Field("start_offset", "int64", 0, 1),
        Field("leader_epoch", "int32", 0, 1),
        Field("lag", "int64", 1, 1),
        Field("error_code", "int16", 0, 1),
        Field("error_message", "string", 0, 1, nullable_from=0),
    )


class DescribeShareGroupOffsetsResponseTopic(Message):
    topic_name: str = ""
    topic_id: bytes = bytes(16)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0, 1),
        Field("topic_id", "uuid", 0, 1),
        Field("partitions", DescribeShareGroupOffsetsResponsePartition, 0, 1, array=True),
    )


class DescribeShareGroupOffsetsResponseGroup(Message):
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = EMPTY
    error_code: int = 0
    error_message: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 1),
        Field("topics", DescribeShareGroupOffsetsResponseTopic, 0, 1, array=True),
        Field("error_code", "int16", 0, 1),
        Field("error_message", "string", 0, 1, nullable_from=0),
    )


class DescribeShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 1),
        Field("groups", DescribeShareGroupOffsetsResponseGroup, 0, 1, array=True),
    )


REQUEST = DescribeShareGroupOffsetsRequest
RESPONSE = DescribeShareGroupOffsetsResponse
