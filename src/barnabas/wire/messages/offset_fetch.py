"""OffsetFetch, key 9, versions 1-10. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 9
VERSIONS = (1, 10)
FLEXIBLE_FROM = 6


class OffsetFetchRequestTopics(Message):
    topic_id: bytes = bytes(16)
    name: str = ""
    partition_indexes: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 10, 10),
        Field("name", "string", 8, 9),
        Field("partition_indexes", "int32", 8, 10, array=True),
    )


class OffsetFetchRequestGroup(Message):
    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: list[OffsetFetchRequestTopics] | None = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 8, 10),
        Field("member_id", "string", 9, 10, nullable_from=9),
        Field("member_epoch", "int32", 9, 10),
        Field("topics", OffsetFetchRequestTopics, 8, 10, array=True, nullable_from=8),
    )


class OffsetFetchRequestTopic(Message):
    name: str = ""
    partition_indexes: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, 7),
        Field("partition_indexes", "int32", 1, 7, array=True),
    )


class OffsetFetchRequest(Message):
    groups: list[OffsetFetchRequestGroup] = EMPTY
    group_id: str = ""
    topics: list[OffsetFetchRequestTopic] | None = EMPTY
    require_stable: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("groups", OffsetFetchRequestGroup, 8, 10, array=True),
        Field("group_id", "string", 1, 7),
        Field("topics", OffsetFetchRequestTopic, 1, 7, array=True, nullable_from=2),
        Field("require_stable", "bool", 7, 10),
    )


class OffsetFetchResponsePartitions(Message):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 8, 10),
        Field("committed_offset", "int64", 8, 10),
        Field("committed_leader_epoch", "int32", 8, 10),
        Field("metadata", "string", 8, 10, nullable_from=8),
        Field("error_code", "int16", 8, 10),
    )


class OffsetFetchResponseTopics(Message):
    topic_id: bytes = bytes(16)
    name: str = ""
    partitions: list[OffsetFetchResponsePartitions] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 10, 10),
        Field("name", "string", 8, 9),
        Field("partitions", OffsetFetchResponsePartitions, 8, 10, array=True),
    )


class OffsetFetchResponseGroup(Message):
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = EMPTY
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 8, 10),
        Field("topics", OffsetFetchResponseTopics, 8, 10, array=True),
        Field("error_code", "int16", 8, 10),
    )


class OffsetFetchResponsePartition(Message):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1, 7),
        Field("committed_offset", "int64", 1, 7),
        Field("committed_leader_epoch", "int32", 5, 7),
        Field("metadata", "string", 1, 7, nullable_from=1),
        Field("error_code", "int16", 1, 7),
    )


class OffsetFetchResponseTopic(Message):
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, 7),
        Field("partitions", OffsetFetchResponsePartition, 1, 7, array=True),
    )


class OffsetFetchResponse(Message):
    throttle_time_ms: int = 0
    groups: list[OffsetFetchResponseGroup] = EMPTY
    topics: list[OffsetFetchResponseTopic] = EMPTY
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 3, 10),
        Field("groups", OffsetFetchResponseGroup, 8, 10, array=True),
        Field("topics", OffsetFetchResponseTopic, 1, 7, array=True),
        Field("error_code", "int16", 2, 7),
    )


REQUEST = OffsetFetchRequest
RESPONSE = OffsetFetchResponse
