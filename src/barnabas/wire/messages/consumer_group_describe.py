"""ConsumerGroupDescribe, key 69, versions 0-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message, shared_default

API_KEY = 69
VERSIONS = (0, 1)
FLEXIBLE_FROM = 0


class ConsumerGroupDescribeRequest(Message):
    group_ids: list[str] = EMPTY
    include_authorized_operations: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_ids", "string", 0, 1, array=True),
        Field("include_authorized_operations", "bool", 0, 1),
    )


class TopicPartitions(Message):
    topic_id: bytes = bytes(16)
    topic_name: str = ""
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0, 1),
        Field("topic_name", "string", 0, 1),
        Field("partitions", "int32", 0, 1, array=True),
    )


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topic_partitions", TopicPartitions, 0, 1, array=True),)


class Member(Message):
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = EMPTY
    subscribed_topic_regex: str | None = None
    assignment: Assignment = shared_default(Assignment)
    target_assignment: Assignment = shared_default(Assignment)
    member_type: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", 0, 1),
        Field("instance_id", "string", 0, 1, nullable_from=0),
        Field("rack_id", "string", 0, 1, nullable_from=0),
        Field("member_epoch", "int32", 0, 1),
        Field("client_id", "string", 0, 1),
        Field("client_host", "string", 0, 1),
        Field("subscribed_topic_names", "string", 0, 1, array=True),
        Field("subscribed_topic_regex", "string", 0, 1, nullable_from=0),
        Field("assignment", Assignment, 0, 1),
        Field("target_assignment", Assignment, 0, 1),
        Field("member_type", "int8", 1, 1),
    )


class DescribedGroup(Message):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: list[Member] = EMPTY
    authorized_operations: int = -2147483648

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 1),
        Field("error_message", "string", 0, 1, nullable_from=0),
        Field("group_id", "string", 0, 1),
        Field("group_state", "string", 0, 1),
        Field("group_epoch", "int32", 0, 1),
        Field("assignment_epoch", "int32", 0, 1),
        Field("assignor_name", "string", 0, 1),
        Field("members", Member, 0, 1, array=True),
        Field("authorized_operations", "int32", 0, 1),
    )


class ConsumerGroupDescribeResponse(Message):
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 1),
        Field("groups", DescribedGroup, 0, 1, array=True),
    )


REQUEST = ConsumerGroupDescribeRequest
RESPONSE = ConsumerGroupDescribeResponse
