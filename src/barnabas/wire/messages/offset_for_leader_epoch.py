"""OffsetForLeaderEpoch, key 23, versions 2-4. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 23
VERSIONS = (2, 4)
FLEXIBLE_FROM = 4


class OffsetForLeaderPartition(Message):
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 2, 4),
        Field("current_leader_epoch", "int32", 2, 4),
        Field("leader_epoch", "int32", 2, 4),
    )


class OffsetForLeaderTopic(Message):
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 2, 4),
        Field("partitions", OffsetForLeaderPartition, 2, 4, array=True),
    )


class OffsetForLeaderEpochRequest(Message):
    replica_id: int = -2
    topics: list[OffsetForLeaderTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", 3, 4),
        Field("topics", OffsetForLeaderTopic, 2, 4, array=True),
    )


class EpochEndOffset(Message):
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 2, 4),
        Field("partition", "int32", 2, 4),
        Field("leader_epoch", "int32", 2, 4),
        Field("end_offset", "int64", 2, 4),
    )


class OffsetForLeaderTopicResult(Message):
    topic: str = ""
    partitions: list[EpochEndOffset] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 2, 4),
        Field("partitions", EpochEndOffset, 2, 4, array=True),
    )


class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: int = 0
    topics: list[OffsetForLeaderTopicResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 2, 4),
        Field("topics", OffsetForLeaderTopicResult, 2, 4, array=True),
    )


REQUEST = OffsetForLeaderEpochRequest
RESPONSE = OffsetForLeaderEpochResponse
