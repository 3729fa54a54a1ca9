"""AlterReplicaLogDirs, key 34, versions 1-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 34
VERSIONS = (1, 2)
FLEXIBLE_FROM = 2


class AlterReplicaLogDirTopic(Message):
    name: str = ""
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, 2),
        Field("partitions", "int32", 1, 2, array=True),
    )


class AlterReplicaLogDir(Message):
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("path", "string", 1, 2),
        Field("topics", AlterReplicaLogDirTopic, 1, 2, array=True),
    )


class AlterReplicaLogDirsRequest(Message):
    dirs: list[AlterReplicaLogDir] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("dirs", AlterReplicaLogDir, 1, 2, array=True),)


class AlterReplicaLogDirPartitionResult(Message):
    partition_index: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1, 2),
        Field("error_code", "int16", 1, 2),
    )


class AlterReplicaLogDirTopicResult(Message):
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 1, 2),
        Field("partitions", AlterReplicaLogDirPartitionResult, 1, 2, array=True),
    )


class AlterReplicaLogDirsResponse(Message):
    throttle_time_ms: int = 0
    results: list[AlterReplicaLogDirTopicResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 2),
        Field("results", AlterReplicaLogDirTopicResult, 1, 2, array=True),
    )


REQUEST = AlterReplicaLogDirsRequest
RESPONSE = AlterReplicaLogDirsResponse
