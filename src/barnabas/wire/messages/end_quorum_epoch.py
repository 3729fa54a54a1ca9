"""EndQuorumEpoch, key 54, versions 0-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 54
VERSIONS = (0, 1)
FLEXIBLE_FROM = 1


class ReplicaInfo(Message):
    candidate_id: int = 0
    candidate_directory_id: bytes = bytes(16)

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("candidate_id", "int32", 1, 1),
        Field("candidate_directory_id", "uuid", 1, 1),
    )


class RequestPartitionData(Message):
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    preferred_candidates: list[ReplicaInfo] = EMPTY
    preferred_successors: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 1),
        Field("leader_id", "int32", 0, 1),
        Field("leader_epoch", "int32", 0, 1),
        Field("preferred_candidates", ReplicaInfo, 1, 1, array=True),
        Field("preferred_successors", "int32", 0, 0, array=True),
    )


class RequestTopicData(Message):
    topic_name: str = ""
    partitions: list[RequestPartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0, 1),
        Field("partitions", RequestPartitionData, 0, 1, array=True),
    )


class LeaderEndpoint(Message):
    name: str = ""
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, 1),
        Field("host", "string", 1, 1),
        Field("port", "uint16", 1, 1),
    )


class EndQuorumEpochRequest(Message):
    cluster_id: str | None = None
    topics: list[RequestTopicData] = EMPTY
    leader_endpoints: list[LeaderEndpoint] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", 0, 1, nullable_from=0),
        Field("topics", RequestTopicData, 0, 1, array=True),
        Field("leader_endpoints", LeaderEndpoint, 1, 1, array=True),
    )


class ResponsePartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 1),
        Field("error_code", "int16", 0, 1),
        Field("leader_id", "int32", 0, 1),
        Field("leader_epoch", "int32", 0, 1),
    )


class ResponseTopicData(Message):
    topic_name: str = ""
    partitions: list[ResponsePartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0, 1),
        Field("partitions", ResponsePartitionData, 0, 1, array=True),
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


class EndQuorumEpochResponse(Message):
    error_code: int = 0
    topics: list[ResponseTopicData] = EMPTY
    node_endpoints: list[NodeEndpoint] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 1),
        Field("topics", ResponseTopicData, 0, 1, array=True),
        Field("node_endpoints", NodeEndpoint, 1, 1, array=True, tag=0),
    )


REQUEST = EndQuorumEpochRequest
RESPONSE = EndQuorumEpochResponse
