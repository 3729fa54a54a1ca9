"""ShareFetch, key 78, versions 1-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message, Records, shared_default

API_KEY = 78
VERSIONS = (1, 2)
FLEXIBLE_FROM = 1


class AcknowledgementBatch(Message):
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", 1, 2),
        Field("last_offset", "int64", 1, 2),
        Field("acknowledge_types", "int8", 1, 2, array=True),
    )


class FetchPartition(Message):
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1, 2),
        Field("acknowledgement_batches", AcknowledgementBatch, 1, 2, array=True),
    )


class FetchTopic(Message):
    topic_id: bytes = bytes(16)
    partitions: list[FetchPartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 1, 2),
        Field("partitions", FetchPartition, 1, 2, array=True),
    )


class ForgottenTopic(Message):
    topic_id: bytes = bytes(16)
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 1, 2),
        Field("partitions", "int32", 1, 2, array=True),
    )


class ShareFetchRequest(Message):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: list[FetchTopic] = EMPTY
    forgotten_topics_data: list[ForgottenTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 1, 2, nullable_from=1),
        Field("member_id", "string", 1, 2, nullable_from=1),
        Field("share_session_epoch", "int32", 1, 2),
        Field("max_wait_ms", "int32", 1, 2),
        Field("min_bytes", "int32", 1, 2),
        Field("max_bytes", "int32", 1, 2),
        Field("max_records", "int32", 1, 2),
        Field("batch_size", "int32", 1, 2),
        Field("share_acquire_mode", "int8", 2, 2),
        Field("is_renew_ack", "bool", 2, 2),
        Field("topics", FetchTopic, 1, 2, array=True),
        Field("forgotten_topics_data", ForgottenTopic, 1, 2, array=True),
    )


class LeaderIdAndEpoch(Message):
    leader_id: int = 0
    leader_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", 1, 2),
        Field("leader_epoch", "int32", 1, 2),
    )


class AcquiredRecords(Message):
    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", 1, 2),
        Field("last_offset", "int64", 1, 2),
        Field("delivery_count", "int16", 1, 2),
    )


class PartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = shared_default(LeaderIdAndEpoch)
    records: Records | None = None
    acquired_records: list[AcquiredRecords] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1, 2),
        Field("error_code", "int16", 1, 2),
        Field("error_message", "string", 1, 2, nullable_from=1),
        Field("acknowledge_error_code", "int16", 1, 2),
        Field("acknowledge_error_message", "string", 1, 2, nullable_from=1),
        Field("current_leader", LeaderIdAndEpoch, 1, 2),
        Field("records", "records", 1, 2),
        Field("acquired_records", AcquiredRecords, 1, 2, array=True),
    )


class ShareFetchableTopicResponse(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 1, 2),
        Field("partitions", PartitionData, 1, 2, array=True),
    )


class NodeEndpoint(Message):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", 1, 2),
        Field("host", "string", 1, 2),
        Field("port", "int32", 1, 2),
        Field("rack", "string", 1, 2, nullable_from=1),
    )


class ShareFetchResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareFetchableTopicResponse] = EMPTY
    node_endpoints: list[NodeEndpoint] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 2),
        Field("error_code", "int16", 1, 2),
        Field("error_message", "string", 1, 2, nullable_from=1),
        Field("acquisition_lock_timeout_ms", "int32", 1, 2),
        Field("responses", ShareFetchableTopicResponse, 1, 2, array=True),
        Field("node_endpoints", NodeEndpoint, 1, 2, array=True),
    )


REQUEST = ShareFetchRequest
RESPONSE = ShareFetchResponse
