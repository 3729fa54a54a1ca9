"""OffsetDelete, key 47, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, NEVER, Field, Message

API_KEY = 47
VERSIONS = (0, 0)
FLEXIBLE_FROM = NEVER


class OffsetDeleteRequestPartition(Message):
    partition_index: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("partition_index", "int32", 0, 0),)


class OffsetDeleteRequestTopic(Message):
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 0),
        Field("partitions", OffsetDeleteRequestPartition, 0, 0, array=True),
    )


class OffsetDeleteRequest(Message):
    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 0),
        Field("topics", OffsetDeleteRequestTopic, 0, 0, array=True),
    )


class OffsetDeleteResponsePartition(Message):
    partition_index: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
    )


class OffsetDeleteResponseTopic(Message):
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 0),
        Field("partitions", OffsetDeleteResponsePartition, 0, 0, array=True),
    )


class OffsetDeleteResponse(Message):
    error_code: int = 0
    throttle_time_ms: int = 0
    topics: list[OffsetDeleteResponseTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 0),
        Field("throttle_time_ms", "int32", 0, 0),
        Field("topics", OffsetDeleteResponseTopic, 0, 0, array=True),
    )


REQUEST = OffsetDeleteRequest
RESPONSE = OffsetDeleteResponse
