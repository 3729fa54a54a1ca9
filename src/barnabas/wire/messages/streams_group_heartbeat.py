"""StreamsGroupHeartbeat, key 88, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message, shared_default

API_KEY = 88
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


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


class CopartitionGroup(Message):
    source_topics: list[int] = EMPTY
    source_topic_regex: list[int] = EMPTY
    repartition_source_topics: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("source_topics", "int16", 0, 0, array=True),
        Field("source_topic_regex", "int16", 0, 0, array=True),
        Field("repartition_source_topics", "int16", 0, 0, array=True),
    )


class Subtopology(Message):
    subtopology_id: str = ""
    source_topics: list[str] = EMPTY
    source_topic_regex: list[str] = EMPTY
    state_changelog_topics: list[TopicInfo] = EMPTY
    repartition_sink_topics: list[str] = EMPTY
    repartition_source_topics: list[TopicInfo] = EMPTY
    copartition_groups: list[CopartitionGroup] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", 0, 0),
        Field("source_topics", "string", 0, 0, array=True),
        Field("source_topic_regex", "string", 0, 0, array=True),
        Field("state_changelog_topics", TopicInfo, 0, 0, array=True),
        Field("repartition_sink_topics", "string", 0, 0, array=True),
        Field("repartition_source_topics", TopicInfo, 0, 0, array=True),
        Field("copartition_groups", CopartitionGroup, 0, 0, array=True),
    )


class Topology(Message):
    epoch: int = 0
    subtopologies: list[Subtopology] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", 0, 0),
        Field("subtopologies", Subtopology, 0, 0, array=True),
    )


class TaskIds(Message):
    subtopology_id: str = ""
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", 0, 0),
        Field("partitions", "int32", 0, 0, array=True),
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


class StreamsGroupHeartbeatRequest(Message):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = EMPTY
    standby_tasks: list[TaskIds] | None = EMPTY
    warmup_tasks: list[TaskIds] | None = EMPTY
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = EMPTY
    task_offsets: list[TaskOffset] | None = EMPTY
    task_end_offsets: list[TaskOffset] | None = EMPTY
    shutdown_application: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 0),
        Field("member_id", "string", 0, 0),
        Field("member_epoch", "int32", 0, 0),
        Field("endpoint_information_epoch", "int32", 0, 0),
        Field("instance_id", "string", 0, 0, nullable_from=0),
        Field("rack_id", "string", 0, 0, nullable_from=0),
        Field("rebalance_timeout_ms", "int32", 0, 0),
        Field("topology", Topology, 0, 0, nullable_from=0),
        Field("active_tasks", TaskIds, 0, 0, array=True, nullable_from=0),
        Field("standby_tasks", TaskIds, 0, 0, array=True, nullable_from=0),
        Field("warmup_tasks", TaskIds, 0, 0, array=True, nullable_from=0),
        Field("process_id", "string", 0, 0, nullable_from=0),
        Field("user_endpoint", Endpoint, 0, 0, nullable_from=0),
        Field("client_tags", KeyValue, 0, 0, array=True, nullable_from=0),
        Field("task_offsets", TaskOffset, 0, 0, array=True, nullable_from=0),
        Field("task_end_offsets", TaskOffset, 0, 0, array=True, nullable_from=0),
        Field("shutdown_application", "bool", 0, 0),
    )


class Status(Message):
    status_code: int = 0
    status_detail: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("status_code", "int8", 0, 0),
        Field("status_detail", "string", 0, 0),
    )


class TopicPartition(Message):
    topic: str = ""
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 0, 0),
        Field("partitions", "int32", 0, 0, array=True),
    )


class EndpointToPartitions(Message):
    user_endpoint: Endpoint = shared_default(Endpoint)
    active_partitions: list[TopicPartition] = EMPTY
    standby_partitions: list[TopicPartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("user_endpoint", Endpoint, 0, 0),
        Field("active_partitions", TopicPartition, 0, 0, array=True),
        Field("standby_partitions", TopicPartition, 0, 0, array=True),
    )


class StreamsGroupHeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    acceptable_recovery_lag: int = 0
    task_offset_interval_ms: int = 0
    status: list[Status] | None = EMPTY
    active_tasks: list[TaskIds] | None = EMPTY
    standby_tasks: list[TaskIds] | None = EMPTY
    warmup_tasks: list[TaskIds] | None = EMPTY
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
        Field("member_id", "string", 0, 0),
        Field("member_epoch", "int32", 0, 0),
        Field("heartbeat_interval_ms", "int32", 0, 0),
        Field("acceptable_recovery_lag", "int32", 0, 0),
        Field("task_offset_interval_ms", "int32", 0, 0),
        Field("status", Status, 0, 0, array=True, nullable_from=0),
        Field("active_tasks", TaskIds, 0, 0, array=True, nullable_from=0),
        Field("standby_tasks", TaskIds, 0, 0, array=True, nullable_from=0),
        Field("warmup_tasks", TaskIds, 0, 0, array=True, nullable_from=0),
        Field("endpoint_information_epoch", "int32", 0, 0),
        Field("partitions_by_user_endpoint", EndpointToPartitions, 0, 0, array=True, nullable_from=0),
    )


REQUEST = StreamsGroupHeartbeatRequest
RESPONSE = StreamsGroupHeartbeatResponse
