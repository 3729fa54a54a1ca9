"""FetchSnapshot, key 59, versions 0-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message, Records, shared_default

API_KEY = 59
VERSIONS = (0, 1)
FLEXIBLE_FROM = 0


class SnapshotId(Message):
    end_offset: int = 0
    epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("end_offset", "int64", 0, 1),
        Field("epoch", "int32", 0, 1),
    )


class RequestPartitionSnapshot(Message):
    partition: int = 0
    current_leader_epoch: int = 0
    snapshot_id: SnapshotId = shared_default(SnapshotId)
    position: int = 0
    replica_directory_id: bytes = bytes(16)

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0, 1),
        Field("current_leader_epoch", "int32", 0, 1),
        Field("snapshot_id", SnapshotId, 0, 1),
        Field("position", "int64", 0, 1),
        Field("replica_directory_id", "uuid", 1, 1, tag=0),
    )


class RequestTopicSnapshot(Message):
    name: str = ""
    partitions: list[RequestPartitionSnapshot] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 1),
        Field("partitions", RequestPartitionSnapshot, 0, 1, array=True),
    )


class FetchSnapshotRequest(Message):
    cluster_id: str | None = None
    replica_id: int = -1
    max_bytes: int = 2147483647
    topics: list[RequestTopicSnapshot] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", 0, 1, nullable_from=0, tag=0),
        Field("replica_id", "int32", 0, 1),
        Field("max_bytes", "int32", 0, 1),
        Field("topics", RequestTopicSnapshot, 0, 1, array=True),
    )


class LeaderIdAndEpoch(Message):
    leader_id: int = 0
    leader_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", 0, 1),
        Field("leader_epoch", "int32", 0, 1),
    )


class ResponsePartitionSnapshot(Message):
    index: int = 0
    error_code: int = 0
    snapshot_id: SnapshotId = shared_default(SnapshotId)
    current_leader: LeaderIdAndEpoch = shared_default(LeaderIdAndEpoch)
    size: int = 0
    position: int = 0
    unaligned_records: Records | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", 0, 1),
        Field("error_code", "int16", 0, 1),
        Field("snapshot_id", SnapshotId, 0, 1),
        Field("current_leader", LeaderIdAndEpoch, 0, 1, tag=0),
        Field("size", "int64", 0, 1),
        Field("position", "int64", 0, 1),
        Field("unaligned_records", "records", 0, 1),
    )


class ResponseTopicSnapshot(Message):
    name: str = ""
    partitions: list[ResponsePartitionSnapshot] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 1),
        Field("partitions", ResponsePartitionSnapshot, 0, 1, array=True),
    )


class NodeEndpoint(Message):
    node_id: int = 0
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", 1, 1),
        Field("host", "string", 1, 1),
        Field("port", "uint16", 1, 1),
    )


class FetchSnapshotResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[ResponseTopicSnapshot] = EMPTY
    node_endpoints: list[NodeEndpoint] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 1),
        Field("error_code", "int16", 0, 1),
        Field("topics", ResponseTopicSnapshot, 0, 1, array=True),
        Field("node_endpoints", NodeEndpoint, 1, 1, array=True, tag=0),
    )


REQUEST = FetchSnapshotRequest
RESPONSE = FetchSnapshotResponse
