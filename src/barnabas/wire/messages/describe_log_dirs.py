"""DescribeLogDirs, key 35, versions 1-5. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 35
VERSIONS = (1, 5)
FLEXIBLE_FROM = 2


class DescribableLogDirTopic(Message):
    topic: str = ""
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 1, 5),
        Field("partitions", "int32", 1, 5, array=True),
    )


class DescribeLogDirsRequest(Message):
    topics: list[DescribableLogDirTopic] | None = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", DescribableLogDirTopic, 1, 5, array=True, nullable_from=1),
    )


class DescribeLogDirsPartition(Message):
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1, 5),
        Field("partition_size", "int64", 1, 5),
        Field("offset_lag", "int64", 1, 5),
        Field("is_future_key", "bool", 1, 5),
    )


class DescribeLogDirsTopic(Message):
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, 5),
        Field("partitions", DescribeLogDirsPartition, 1, 5, array=True),
    )


class DescribeLogDirsResult(Message):
    error_code: int = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = EMPTY
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1, 5),
        Field("log_dir", "string", 1, 5),
        Field("topics", DescribeLogDirsTopic, 1, 5, array=True),
        Field("total_bytes", "int64", 4, 5),
        Field("usable_bytes", "int64", 4, 5),
        Field("is_cordoned", "bool", 5, 5),
    )


class DescribeLogDirsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    results: list[DescribeLogDirsResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 5),
        Field("error_code", "int16", 3, 5),
        Field("results", DescribeLogDirsResult, 1, 5, array=True),
    )


REQUEST = DescribeLogDirsRequest
RESPONSE = DescribeLogDirsResponse
