"""AlterShareGroupOffsets, key 91, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 91
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class AlterShareGroupOffsetsRequestPartition(Message):
    partition_index: int = 0
    start_offset: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 0),
        Field("start_offset", "int64", 0, 0),
    )


class AlterShareGroupOffsetsRequestTopic(Message):
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0, 0),
        Field("partitions", AlterShareGroupOffsetsRequestPartition, 0, 0, array=True),
    )


class AlterShareGroupOffsetsRequest(Message):
    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 0),
        Field("topics", AlterShareGroupOffsetsRequestTopic, 0, 0, array=True),
    )


class AlterShareGroupOffsetsResponsePartition(Message):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
    )


class AlterShareGroupOffsetsResponseTopic(Message):
    topic_name: str = ""
    topic_id: bytes = bytes(16)
    partitions: list[AlterShareGroupOffsetsResponsePartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0, 0),
        Field("topic_id", "uuid", 0, 0),
        Field("partitions", AlterShareGroupOffsetsResponsePartition, 0, 0, array=True),
    )


class AlterShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
        Field("responses", AlterShareGroupOffsetsResponseTopic, 0, 0, array=True),
    )


REQUEST = AlterShareGroupOffsetsRequest
RESPONSE = AlterShareGroupOffsetsResponse
