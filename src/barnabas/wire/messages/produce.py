"""Produce, key 0, versions 3-13. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message, shared_default

API_KEY = 0
VERSIONS = (3, 13)
FLEXIBLE_FROM = 9


class PartitionProduceData(Message):
    index: int = 0
    records: memoryview | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", 3, 13),
        Field("records", "records", 3, 13, nullable_from=3),
    )


class TopicProduceData(Message):
    topic_id: bytes = bytes(16)
    name: str = ""
    partition_data: list[PartitionProduceData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 13, 13),
        Field("name", "string", 3, 12),
        Field("partition_data", PartitionProduceData, 3, 13, array=True),
    )


class ProduceRequest(Message):
    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: list[TopicProduceData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", 3, 13, nullable_from=3),
        Field("acks", "int16", 3, 13),
        Field("timeout_ms", "int32", 3, 13),
        Field("topic_data", TopicProduceData, 3, 13, array=True),
    )


class BatchIndexAndErrorMessage(Message):
    batch_index: int = 0
    batch_index_error_message: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("batch_index", "int32", 8, 13),
        Field("batch_index_error_message", "string", 8, 13, nullable_from=8),
    )


class LeaderIdAndEpoch(Message):
    leader_id: int = -1
    leader_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", 10, 13),
        Field("leader_epoch", "int32", 10, 13),
    )


class PartitionProduceResponse(Message):
    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: list[BatchIndexAndErrorMessage] = EMPTY
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = shared_default(LeaderIdAndEpoch)

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", 3, 13),
        Field("error_code", "int16", 3, 13),
        Field("base_offset", "int64", 3, 13),
        Field("log_append_time_ms", "int64", 3, 13),
        Field("log_start_offset", "int64", 5, 13),
        Field("record_errors", BatchIndexAndErrorMessage, 8, 13, array=True),
        Field("error_message", "string", 8, 13, nullable_from=8),
        Field("current_leader", LeaderIdAndEpoch, 10, 13, tag=0),
    )


class TopicProduceResponse(Message):
    topic_id: bytes = bytes(16)
    name: str = ""
    partition_responses: list[PartitionProduceResponse] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 13, 13),
        Field("name", "string", 3, 12),
        Field("partition_responses", PartitionProduceResponse, 3, 13, array=True),
    )


class NodeEndpoint(Message):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", 10, 13),
        Field("host", "string", 10, 13),
        Field("port", "int32", 10, 13),
        Field("rack", "string", 10, 13, nullable_from=10),
    )


class ProduceResponse(Message):
    responses: list[TopicProduceResponse] = EMPTY
    throttle_time_ms: int = 0
    node_endpoints: list[NodeEndpoint] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("responses", TopicProduceResponse, 3, 13, array=True),
        Field("throttle_time_ms", "int32", 3, 13),
        Field("node_endpoints", NodeEndpoint, 10, 13, array=True, tag=0),
    )


REQUEST = ProduceRequest
RESPONSE = ProduceResponse
