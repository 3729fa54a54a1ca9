"""StreamsGroupDescribe, key 89, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message, shared_default

API_KEY = 89
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class StreamsGroupDescribeRequest(Message):
    group_ids: list[str] = EMPTY
    include_authorized_operations: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_ids", "string", 0, 0, array=True),
        Field("include_authorized_operations", "bool", 0, 0),
    )


class KeyValue(Message):
    key: str = ""
    value: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", 0, 0),
        Field("value", "string", 0, 0),
    )


class TopicInfo(Message):
    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[KeyValue] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 0),
        Field("partitions", "int32", 0, 0),
        Field("replication_factor", "int16", 0, 0),
        Field("topic_configs", KeyValue, 0, 0, array=True),
    )


class Subtopology(Message):
    subtopology_id: str = ""
    source_topics: list[str] = EMPTY
    repartition_sink_topics: list[str] = EMPTY
    state_changelog_topics: list[TopicInfo] = EMPTY
    repartition_source_topics: list[TopicInfo] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", 0, 0),
        Field("source_topics", "string", 0, 0, array=True),
        Field("repartition_sink_topics", "string", 0, 0, array=True),
        Field("state_changelog_topics", TopicInfo, 0, 0, array=True),
        Field("repartition_source_topics", TopicInfo, 0, 0, array=True),
    )


class Topology(Message):
    epoch: int = 0
    subtopologies: list[Subtopology] | None = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", 0, 0),
        Field("subtopologies", Subtopology, 0, 0, array=True, nullable_from=0),
    )


class Endpoint(Message):
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("host", "string", 0, 0),
        Field("port", "uint16", 0, 0),
    )


class TaskOffset(Message):
    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", 0, 0),
        Field("partition", "int32", 0, 0),
        Field("offset", "int64", 0, 0),
    )


class TaskIds(Message):
    subtopology_id: str = ""
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", 0, 0),
        Field("partitions", "int32", 0, 0, array=True),
    )


class Assignment(Message):
    active_tasks: list[TaskIds] = EMPTY
    standby_tasks: list[TaskIds] = EMPTY
    warmup_tasks: list[TaskIds] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("active_tasks", TaskIds, 0, 0, array=True),
        Field("standby_tasks", TaskIds, 0, 0, array=True),
        Field("warmup_tasks", TaskIds, 0, 0, array=True),
    )


class Member(Message):
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = EMPTY
    task_offsets: list[TaskOffset] = EMPTY
    task_end_offsets: list[TaskOffset] = EMPTY
    assignment: Assignment = shared_default(Assignment)
    target_assignment: Assignment = shared_default(Assignment)
    is_classic: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", 0, 0),
        Field("member_epoch", "int32", 0, 0),
        Field("instance_id", "string", 0, 0, nullable_from=0),
        Field("rack_id", "string", 0, 0, nullable_from=0),
        Field("client_id", "string", 0, 0),
        Field("client_host", "string", 0, 0),
        Field("topology_epoch", "int32", 0, 0),
        Field("process_id", "string", 0, 0),
        Field("user_endpoint", Endpoint, 0, 0, nullable_from=0),
        Field("client_tags", KeyValue, 0, 0, array=True),
        Field("task_offsets", TaskOffset, 0, 0, array=True),
        Field("task_end_offsets", TaskOffset, 0, 0, array=True),
        Field("assignment", Assignment, 0, 0),
        Field("target_assignment", Assignment, 0, 0),
        Field("is_classic", "bool", 0, 0),
    )


class DescribedGroup(Message):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: list[Member] = EMPTY
    authorized_operations: int = -2147483648

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
        Field("group_id", "string", 0, 0),
        Field("group_state", "string", 0, 0),
        Field("group_epoch", "int32", 0, 0),
        Field("assignment_epoch", "int32", 0, 0),
        Field("topology", Topology, 0, 0, nullable_from=0),
        Field("members", Member, 0, 0, array=True),
        Field("authorized_operations", "int32", 0, 0),
    )


class StreamsGroupDescribeResponse(Message):
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("groups", DescribedGroup, 0, 0, array=True),
    )


REQUEST = StreamsGroupDescribeRequest
RESPONSE = StreamsGroupDescribeResponse
