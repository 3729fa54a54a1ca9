"""AssignReplicasToDirs, key 73, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 73
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class RequestPartitionData(Message):
    partition_index: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("partition_index", "int32", 0, 0),)


class RequestTopicData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[RequestPartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0, 0),
        Field("partitions", RequestPartitionData, 0, 0, array=True),
    )


class RequestDirectoryData(Message):
    id_: bytes = bytes(16)
    topics: list[RequestTopicData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id_", "uuid", 0, 0),
        Field("topics", RequestTopicData, 0, 0, array=True),
    )


class AssignReplicasToDirsRequest(Message):
    broker_id: int = 0
    broker_epoch: int = -1
    directories: list[RequestDirectoryData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 0, 0),
        Field("broker_epoch", "int64", 0, 0),
        Field("directories", RequestDirectoryData, 0, 0, array=True),
    )


class ResponsePartitionData(Message):
    partition_index: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
    )


class ResponseTopicData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[ResponsePartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0, 0),
        Field("partitions", ResponsePartitionData, 0, 0, array=True),
    )


class ResponseDirectoryData(Message):
    id_: bytes = bytes(16)
    topics: list[ResponseTopicData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id_", "uuid", 0, 0),
        Field("topics", ResponseTopicData, 0, 0, array=True),
    )


class AssignReplicasToDirsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    directories: list[ResponseDirectoryData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("directories", ResponseDirectoryData, 0, 0, array=True),
    )


REQUEST = AssignReplicasToDirsRequest
RESPONSE = AssignReplicasToDirsResponse
