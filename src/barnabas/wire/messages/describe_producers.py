"""DescribeProducers, key 61, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 61
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class TopicRequest(Message):
    name: str = ""
    partition_indexes: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 0),
        Field("partition_indexes", "int32", 0, 0, array=True),
    )


class DescribeProducersRequest(Message):
    topics: list[TopicRequest] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topics", TopicRequest, 0, 0, array=True),)


class ProducerState(Message):
    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", 0, 0),
        Field("producer_epoch", "int32", 0, 0),
        Field("last_sequence", "int32", 0, 0),
        Field("last_timestamp", "int64", 0, 0),
        Field("coordinator_epoch", "int32", 0, 0),
        Field("current_txn_start_offset", "int64", 0, 0),
    )


class PartitionResponse(Message):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
        Field("active_producers", ProducerState, 0, 0, array=True),
    )


class TopicResponse(Message):
    name: str = ""
    partitions: list[PartitionResponse] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 0),
        Field("partitions", PartitionResponse, 0, 0, array=True),
    )


class DescribeProducersResponse(Message):
    throttle_time_ms: int = 0
    topics: list[TopicResponse] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("topics", TopicResponse, 0, 0, array=True),
    )


REQUEST = DescribeProducersRequest
RESPONSE = DescribeProducersResponse
