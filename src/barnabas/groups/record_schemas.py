"""The keys and values of `__consumer_offsets`, in Kafka's format.

Keys are never flexible. Values are: those of KIP-848 from version 0, the two older ones from version 4."""

from typing import ClassVar

from barnabas.ids import ZERO_UUID
from barnabas.wire.message import EMPTY, Field, Message


class OffsetCommitKey(Message):
    group: str = ""
    topic: str = ""
    partition: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group", "string", 0, 0),
        Field("topic", "string", 0, 0),
        Field("partition", "int32", 0, 0),
    )


class OffsetCommitValue(Message):
    offset: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1
    topic_id: bytes = ZERO_UUID

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("offset", "int64", 0, 4),
        Field("leader_epoch", "int32", 3, 4),
        Field("metadata", "string", 0, 4),
        Field("commit_timestamp", "int64", 0, 4),
        Field("expire_timestamp", "int64", 1, 1),
        Field("topic_id", "uuid", 4, 4, tag=0),
    )


class GroupMetadataKey(Message):
    group: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group", "string", 0, 0),)


class MemberMetadata(Message):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    session_timeout: int = 0
    subscription: bytes = b""
    assignment: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", 0, 4),
        Field("group_instance_id", "string", 3, 4, nullable_from=3),
        Field("client_id", "string", 0, 4),
        Field("client_host", "string", 0, 4),
        Field("rebalance_timeout", "int32", 1, 4),
        Field("session_timeout", "int32", 0, 4),
        Field("subscription", "bytes", 0, 4),
        Field("assignment", "bytes", 0, 4),
    )


class GroupMetadataValue(Message):
    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    current_state_timestamp: int = -1
    members: list[MemberMetadata] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("protocol_type", "string", 0, 4),
        Field("generation", "int32", 0, 4),
        Field("protocol", "string", 0, 4, nullable_from=0),
        Field("leader", "string", 0, 4, nullable_from=0),
        Field("current_state_timestamp", "int64", 2, 4),
        Field("members", MemberMetadata, 0, 4, array=True),
    )


class ConsumerGroupMetadataKey(Message):
    group_id: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string", 0, 0),)


class ConsumerGroupMetadataValue(Message):
    epoch: int = 0
    metadata_hash: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", 0, 0),
        Field("metadata_hash", "int64", 0, 0, tag=0),
    )


class ConsumerGroupPartitionMetadataKey(Message):
    group_id: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string", 0, 0),)


class PartitionRacks(Message):
    partition: int = 0
    racks: list[str] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0, 0),
        Field("racks", "string", 0, 0, array=True),
    )


class SubscribedTopic(Message):
    topic_id: bytes = ZERO_UUID
    topic_name: str = ""
    num_partitions: int = 0
    partition_metadata: list[PartitionRacks] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0, 0),
        Field("topic_name", "string", 0, 0),
        Field("num_partitions", "int32", 0, 0),
        Field("partition_metadata", PartitionRacks, 0, 0, array=True),
    )


class ConsumerGroupPartitionMetadataValue(Message):
    """Written up to Kafka 4.0; later versions have a hash in ConsumerGroupMetadataValue instead."""

    topics: list[SubscribedTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topics", SubscribedTopic, 0, 0, array=True),)


class ConsumerGroupMemberMetadataKey(Message):
    group_id: str = ""
    member_id: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 0),
        Field("member_id", "string", 0, 0),
    )


class ClassicProtocol(Message):
    name: str = ""
    metadata: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 0),
        Field("metadata", "bytes", 0, 0),
    )


class ClassicMemberMetadata(Message):
    """What a member of the classic protocol sent when it joined a consumer group."""

    session_timeout_ms: int = 0
    supported_protocols: list[ClassicProtocol] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("session_timeout_ms", "int32", 0, 0),
        Field("supported_protocols", ClassicProtocol, 0, 0, array=True),
    )


class ConsumerGroupMemberMetadataValue(Message):
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = EMPTY
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic_member_metadata: ClassicMemberMetadata | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("instance_id", "string", 0, 0, nullable_from=0),
        Field("rack_id", "string", 0, 0, nullable_from=0),
        Field("client_id", "string", 0, 0),
        Field("client_host", "string", 0, 0),
        Field("subscribed_topic_names", "string", 0, 0, array=True),
        Field("subscribed_topic_regex", "string", 0, 0, nullable_from=0),
        Field("rebalance_timeout_ms", "int32", 0, 0),
        Field("server_assignor", "string", 0, 0, nullable_from=0),
        Field("classic_member_metadata", ClassicMemberMetadata, 0, 0, nullable_from=0, tag=0),
    )


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    group_id: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string", 0, 0),)


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int = 0
    assignment_timestamp: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("assignment_epoch", "int32", 0, 0),
        Field("assignment_timestamp", "int64", 0, 0, tag=0),
    )


class ConsumerGroupTargetAssignmentMemberKey(Message):
    group_id: str = ""
    member_id: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 0),
        Field("member_id", "string", 0, 0),
    )


class TargetTopicPartitions(Message):
    topic_id: bytes = ZERO_UUID
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0, 0),
        Field("partitions", "int32", 0, 0, array=True),
    )


class ConsumerGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[TargetTopicPartitions] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_partitions", TargetTopicPartitions, 0, 0, array=True),
    )


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    group_id: str = ""
    member_id: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 0),
        Field("member_id", "string", 0, 0),
    )


class CurrentTopicPartitions(Message):
    topic_id: bytes = ZERO_UUID
    partitions: list[int] = EMPTY
    # If given, it has the member epoch at which each of `partitions` was assigned.
    assignment_epochs: list[int] | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0, 0),
        Field("partitions", "int32", 0, 0, array=True),
        Field("assignment_epochs", "int32", 0, 0, array=True, nullable_from=0, tag=0),
    )


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[CurrentTopicPartitions] = EMPTY
    partitions_pending_revocation: list[CurrentTopicPartitions] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_epoch", "int32", 0, 0),
        Field("previous_member_epoch", "int32", 0, 0),
        Field("state", "int8", 0, 0),
        Field("assigned_partitions", CurrentTopicPartitions, 0, 0, array=True),
        Field("partitions_pending_revocation", CurrentTopicPartitions, 0, 0, array=True),
    )


class ConsumerGroupRegularExpressionKey(Message):
    group_id: str = ""
    regular_expression: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 0),
        Field("regular_expression", "string", 0, 0),
    )


class ConsumerGroupRegularExpressionValue(Message):
    topics: list[str] = EMPTY
    version: int = 0
    timestamp: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", "string", 0, 0, array=True),
        Field("version", "int64", 0, 0),
        Field("timestamp", "int64", 0, 0),
    )
