"""DeleteRecords, key 21, versions 0-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 21
VERSIONS = (0, 2)
FLEXIBLE_FROM = 2


class DeleteRecordsPartition(Message):
    partition_index: int = 0
    offset: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 2),
        Field("offset", "int64", 0, 2),
    )


class DeleteRecordsTopic(Message):
    name: str = ""
    partitions: list[DeleteRecordsPartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 2),
        Field("partitions", DeleteRecordsPartition, 0, 2, array=True),
    )


class DeleteRecordsRequest(Message):
    topics: list[DeleteRecordsTopic] = EMPTY
    timeout_ms: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", DeleteRecordsTopic, 0, 2, array=True),
        Field("timeout_ms", "int32", 0, 2),
    )


class DeleteRecordsPartitionResult(Message):
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 2),
        Field("low_watermark", "int64", 0, 2),
        Field("error_code", "int16", 0, 2),
    )


class DeleteRecordsTopicResult(Message):
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 2),
        Field("partitions", DeleteRecordsPartitionResult, 0, 2, array=True),
    )


class DeleteRecordsResponse(Message):
    throttle_time_ms: int = 0
    topics: list[DeleteRecordsTopicResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 2),
        Field("topics", DeleteRecordsTopicResult, 0, 2, array=True),
    )


REQUEST = DeleteRecordsRequest
RESPONSE = DeleteRecordsResponse
