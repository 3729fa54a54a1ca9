"""Vote, key 52, versions 0-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 52
VERSIONS = (0, 2)
FLEXIBLE_FROM = 0


class RequestPartitionData(Message):
    partition_index: int = 0
    replica_epoch: int = 0
    replica_id: int = 0
    replica_directory_id: bytes = bytes(16)
    voter_directory_id: bytes = bytes(16)
    last_offset_epoch: int = 0
    last_offset: int = 0
    pre_vote: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 2),
        Field("replica_epoch", "int32", 0, 2),
        Field("replica_id", "int32", 0, 2),
        Field("replica_directory_id", "uuid", 1, 2),
        Field("voter_directory_id", "uuid", 1, 2),
        Field("last_offset_epoch", "int32", 0, 2),
        Field("last_offset", "int64", 0, 2),
        Field("pre_vote", "bool", 2, 2),
    )


class RequestTopicData(Message):
    topic_name: str = ""
    partitions: list[RequestPartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0, 2),
        Field("partitions", RequestPartitionData, 0, 2, array=True),
    )


class VoteRequest(Message):
    cluster_id: str | None = None
    voter_id: int = -1
    topics: list[RequestTopicData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", 0, 2, nullable_from=0),
        Field("voter_id", "int32", 1, 2),
        Field("topics", RequestTopicData, 0, 2, array=True),
    )


class ResponsePartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    vote_granted: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 2),
        Field("error_code", "int16", 0, 2),
        Field("leader_id", "int32", 0, 2),
        Field("leader_epoch", "int32", 0, 2),
        Field("vote_granted", "bool", 0, 2),
    )


class ResponseTopicData(Message):
    topic_name: str = ""
    partitions: list[ResponsePartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0, 2),
        Field("partitions", ResponsePartitionData, 0, 2, array=True),
    )


class NodeEndpoint(Message):
    node_id: int = 0
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", 1, 2),
        Field("host", "string", 1, 2),
        Field("port", "uint16", 1, 2),
    )


class VoteResponse(Message):
    error_code: int = 0
    topics: list[ResponseTopicData] = EMPTY
    node_endpoints: list[NodeEndpoint] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 2),
        Field("topics", ResponseTopicData, 0, 2, array=True),
        Field("node_endpoints", NodeEndpoint, 1, 2, array=True, tag=0),
    )


REQUEST = VoteRequest
RESPONSE = VoteResponse
