"""Metadata, key 3, versions 0-13. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 3
VERSIONS = (0, 13)
FLEXIBLE_FROM = 9


class MetadataRequestTopic(Message):
    topic_id: bytes = bytes(16)
    name: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 10, 13),
        Field("name", "string", 0, 13, nullable_from=10),
    )


class MetadataRequest(Message):
    topics: list[MetadataRequestTopic] | None = EMPTY
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", MetadataRequestTopic, 0, 13, array=True, nullable_from=1),
        Field("allow_auto_topic_creation", "bool", 4, 13),
        Field("include_cluster_authorized_operations", "bool", 8, 10),
        Field("include_topic_authorized_operations", "bool", 8, 13),
    )


class MetadataResponseBroker(Message):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", 0, 13),
        Field("host", "string", 0, 13),
        Field("port", "int32", 0, 13),
        Field("rack", "string", 1, 13, nullable_from=1),
    )


class MetadataResponsePartition(Message):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = EMPTY
    isr_nodes: list[int] = EMPTY
    offline_replicas: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 13),
        Field("partition_index", "int32", 0, 13),
        Field("leader_id", "int32", 0, 13),
        Field("leader_epoch", "int32", 7, 13),
        Field("replica_nodes", "int32", 0, 13, array=True),
        Field("isr_nodes", "int32", 0, 13, array=True),
        Field("offline_replicas", "int32", 5, 13, array=True),
    )


class MetadataResponseTopic(Message):
    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = bytes(16)
    is_internal: bool = False
    partitions: list[MetadataResponsePartition] = EMPTY
    topic_authorized_operations: int = -2147483648

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 13),
        Field("name", "string", 0, 13, nullable_from=12),
        Field("topic_id", "uuid", 10, 13),
        Field("is_internal", "bool", 1, 13),
        Field("partitions", MetadataResponsePartition, 0, 13, array=True),
        Field("topic_authorized_operations", "int32", 8, 13),
    )


class MetadataResponse(Message):
    throttle_time_ms: int = 0
    brokers: list[MetadataResponseBroker] = EMPTY
    cluster_id: str | None = None
    controller_id: int = -1
    topics: list[MetadataResponseTopic] = EMPTY
    error_code: int = 0
    cluster_authorized_operations: int = -2147483648

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 3, 13),
        Field("brokers", MetadataResponseBroker, 0, 13, array=True),
        Field("cluster_id", "string", 2, 13, nullable_from=2),
        Field("controller_id", "int32", 1, 13),
        Field("topics", MetadataResponseTopic, 0, 13, array=True),
        Field("error_code", "int16", 13, 13),
        Field("cluster_authorized_operations", "int32", 8, 10),
    )


REQUEST = MetadataRequest
RESPONSE = MetadataResponse
