"""Fetch, key 1, versions 4-18. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message, Records, shared_default

API_KEY = 1
VERSIONS = (4, 18)
FLEXIBLE_FROM = 12


class ReplicaState(Message):
    replica_id: int = -1
    replica_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", 15, 18),
        Field("replica_epoch", "int64", 15, 18),
    )


class FetchPartition(Message):
    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: bytes = bytes(16)
    high_watermark: int = 9223372036854775807

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 4, 18),
        Field("current_leader_epoch", "int32", 9, 18),
        Field("fetch_offset", "int64", 4, 18),
        Field("last_fetched_epoch", "int32", 12, 18),
        Field("log_start_offset", "int64", 5, 18),
        Field("partition_max_bytes", "int32", 4, 18),
        Field("replica_directory_id", "uuid", 17, 18, tag=0),
        Field("high_watermark", "int64", 18, 18, tag=1),
    )


class FetchTopic(Message):
    topic_id: bytes = bytes(16)
    topic: str = ""
    partitions: list[FetchPartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 13, 18),
        Field("topic", "string", 4, 12),
        Field("partitions", FetchPartition, 4, 18, array=True),
    )


class ForgottenTopic(Message):
    topic_id: bytes = bytes(16)
    topic: str = ""
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 13, 18),
        Field("topic", "string", 7, 12),
        Field("partitions", "int32", 7, 18, array=True),
    )


class FetchRequest(Message):
    cluster_id: str | None = None
    replica_state: ReplicaState = shared_default(ReplicaState)
    replica_id: int = -1
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: list[FetchTopic] = EMPTY
    forgotten_topics_data: list[ForgottenTopic] = EMPTY
    rack_id: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", 12, 18, nullable_from=12, tag=0),
        Field("replica_state", ReplicaState, 15, 18, tag=1),
        Field("replica_id", "int32", 4, 14),
        Field("max_wait_ms", "int32", 4, 18),
        Field("min_bytes", "int32", 4, 18),
        Field("max_bytes", "int32", 4, 18),
        Field("isolation_level", "int8", 4, 18),
        Field("session_id", "int32", 7, 18),
        Field("session_epoch", "int32", 7, 18),
        Field("topics", FetchTopic, 4, 18, array=True),
        Field("forgotten_topics_data", ForgottenTopic, 7, 18, array=True),
        Field("rack_id", "string", 11, 18),
    )


class EpochEndOffset(Message):
    epoch: int = -1
    end_offset: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", 12, 18),
        Field("end_offset", "int64", 12, 18),
    )


class LeaderIdAndEpoch(Message):
    leader_id: int = -1
    leader_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", 12, 18),
        Field("leader_epoch", "int32", 12, 18),
    )


class SnapshotId(Message):
    end_offset: int = -1
    epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("end_offset", "int64", 12, 18),
        Field("epoch", "int32", 12, 18),
    )


class AbortedTransaction(Message):
    producer_id: int = 0
    first_offset: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", 4, 18),
        Field("first_offset", "int64", 4, 18),
    )


class PartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset = shared_default(EpochEndOffset)
    current_leader: LeaderIdAndEpoch = shared_default(LeaderIdAndEpoch)
    snapshot_id: SnapshotId = shared_default(SnapshotId)
    aborted_transactions: list[AbortedTransaction] | None = EMPTY
    preferred_read_replica: int = -1
    records: Records | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 4, 18),
        Field("error_code", "int16", 4, 18),
        Field("high_watermark", "int64", 4, 18),
        Field("last_stable_offset", "int64", 4, 18),
        Field("log_start_offset", "int64", 5, 18),
        Field("diverging_epoch", EpochEndOffset, 12, 18, tag=0),
        Field("current_leader", LeaderIdAndEpoch, 12, 18, tag=1),
        Field("snapshot_id", SnapshotId, 12, 18, tag=2),
        Field("aborted_transactions", AbortedTransaction, 4, 18, array=True, nullable_from=4),
        Field("preferred_read_replica", "int32", 11, 18),
        Field("records", "records", 4, 18, nullable_from=4),
    )


class FetchableTopicResponse(Message):
    topic_id: bytes = bytes(16)
    topic: str = ""
    partitions: list[PartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 13, 18),
        Field("topic", "string", 4, 12),
        Field("partitions", PartitionData, 4, 18, array=True),
    )


class NodeEndpoint(Message):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", 16, 18),
        Field("host", "string", 16, 18),
        Field("port", "int32", 16, 18),
        Field("rack", "string", 16, 18, nullable_from=16),
    )


class FetchResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: list[FetchableTopicResponse] = EMPTY
    node_endpoints: list[NodeEndpoint] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 4, 18),
        Field("error_code", "int16", 7, 18),
        Field("session_id", "int32", 7, 18),
        Field("responses", FetchableTopicResponse, 4, 18, array=True),
        Field("node_endpoints", NodeEndpoint, 16, 18, array=True, tag=0),
    )


REQUEST = FetchRequest
RESPONSE = FetchResponse
