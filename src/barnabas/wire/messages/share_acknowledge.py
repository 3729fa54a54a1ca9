"""ShareAcknowledge, key 79, versions 1-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message, shared_default

API_KEY = 79
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


class AcknowledgePartition(Message):
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1, 2),
        Field("acknowledgement_batches", AcknowledgementBatch, 1, 2, array=True),
    )


class AcknowledgeTopic(Message):
    topic_id: bytes = bytes(16)
    partitions: list[AcknowledgePartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 1, 2),
        Field("partitions", AcknowledgePartition, 1, 2, array=True),
    )


class ShareAcknowledgeRequest(Message):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: list[AcknowledgeTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 1, 2, nullable_from=1),
        Field("member_id", "string", 1, 2, nullable_from=1),
        Field("share_session_epoch", "int32", 1, 2),
        Field("is_renew_ack", "bool", 2, 2),
        Field("topics", AcknowledgeTopic, 1, 2, array=True),
    )


class LeaderIdAndEpoch(Message):
    leader_id: int = 0
    leader_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", 1, 2),
        Field("leader_epoch", "int32", 1, 2),
    )


class PartitionData(Message):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = shared_default(LeaderIdAndEpoch)

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1, 2),
        Field("error_code", "int16", 1, 2),
        Field("error_message", "string", 1, 2, nullable_from=1),
        Field("current_leader", LeaderIdAndEpoch, 1, 2),
    )


class ShareAcknowledgeTopicResponse(Message):
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


class ShareAcknowledgeResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareAcknowledgeTopicResponse] = EMPTY
    node_endpoints: list[NodeEndpoint] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 2),
        Field("error_code", "int16", 1, 2),
        Field("error_message", "string", 1, 2, nullable_from=1),
        Field("acquisition_lock_timeout_ms", "int32", 2, 2),
        Field("responses", ShareAcknowledgeTopicResponse, 1, 2, array=True),
        Field("node_endpoints", NodeEndpoint, 1, 2, array=True),
    )


REQUEST = ShareAcknowledgeRequest
RESPONSE = ShareAcknowledgeResponse
