"""AlterPartition, key 56, versions 2-3. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 56
VERSIONS = (2, 3)
FLEXIBLE_FROM = 2


class BrokerState(Message):
    broker_id: int = 0
    broker_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 3, 3),
        Field("broker_epoch", "int64", 3, 3),
    )


class RequestPartitionData(Message):
    partition_index: int = 0
    leader_epoch: int = 0
    new_isr_with_epochs: list[BrokerState] = EMPTY
    new_isr: list[int] = EMPTY
    leader_recovery_state: int = 0
    partition_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 2, 3),
        Field("leader_epoch", "int32", 2, 3),
        Field("new_isr_with_epochs", BrokerState, 3, 3, array=True),
        Field("new_isr", "int32", 2, 2, array=True),
        Field("leader_recovery_state", "int8", 2, 3),
        Field("partition_epoch", "int32", 2, 3),
    )


class RequestTopicData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[RequestPartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 2, 3),
        Field("partitions", RequestPartitionData, 2, 3, array=True),
    )


class AlterPartitionRequest(Message):
    broker_id: int = 0
    broker_epoch: int = -1
    topics: list[RequestTopicData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 2, 3),
        Field("broker_epoch", "int64", 2, 3),
        Field("topics", RequestTopicData, 2, 3, array=True),
    )


class ResponsePartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    isr: list[int] = EMPTY
    leader_recovery_state: int = 0
    partition_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 2, 3),
        Field("error_code", "int16", 2, 3),
        Field("leader_id", "int32", 2, 3),
        Field("leader_epoch", "int32", 2, 3),
        Field("isr", "int32", 2, 3, array=True),
        Field("leader_recovery_state", "int8", 2, 3),
        Field("partition_epoch", "int32", 2, 3),
    )


class ResponseTopicData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[ResponsePartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 2, 3),
        Field("partitions", ResponsePartitionData, 2, 3, array=True),
    )


class AlterPartitionResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[ResponseTopicData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 2, 3),
        Field("error_code", "int16", 2, 3),
        Field("topics", ResponseTopicData, 2, 3, array=True),
    )


REQUEST = AlterPartitionRequest
RESPONSE = AlterPartitionResponse
