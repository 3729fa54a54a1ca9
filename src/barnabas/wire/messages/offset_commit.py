"""OffsetCommit, key 8, versions 2-10. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 8
VERSIONS = (2, 10)
FLEXIBLE_FROM = 8


class OffsetCommitRequestPartition(Message):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 2, 10),
        Field("committed_offset", "int64", 2, 10),
        Field("committed_leader_epoch", "int32", 6, 10),
        Field("committed_metadata", "string", 2, 10, nullable_from=2),
    )


class OffsetCommitRequestTopic(Message):
    topic_id: bytes = bytes(16)
    name: str = ""
    partitions: list[OffsetCommitRequestPartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 10, 10),
        Field("name", "string", 2, 9),
        Field("partitions", OffsetCommitRequestPartition, 2, 10, array=True),
    )


class OffsetCommitRequest(Message):
    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: list[OffsetCommitRequestTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 2, 10),
        Field("generation_id_or_member_epoch", "int32", 2, 10),
        Field("member_id", "string", 2, 10),
        Field("group_instance_id", "string", 7, 10, nullable_from=7),
        Field("retention_time_ms", "int64", 2, 4),
        Field("topics", OffsetCommitRequestTopic, 2, 10, array=True),
    )


class OffsetCommitResponsePartition(Message):
    partition_index: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 2, 10),
        Field("error_code", "int16", 2, 10),
    )


class OffsetCommitResponseTopic(Message):
    topic_id: bytes = bytes(16)
    name: str = ""
    partitions: list[OffsetCommitResponsePartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 10, 10),
        Field("name", "string", 2, 9),
        Field("partitions", OffsetCommitResponsePartition, 2, 10, array=True),
    )


class OffsetCommitResponse(Message):
    throttle_time_ms: int = 0
    topics: list[OffsetCommitResponseTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 3, 10),
        Field("topics", OffsetCommitResponseTopic, 2, 10, array=True),
    )


REQUEST = OffsetCommitRequest
RESPONSE = OffsetCommitResponse
