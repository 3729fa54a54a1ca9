"""CreateTopics, key 19, versions 2-7. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 19
VERSIONS = (2, 7)
FLEXIBLE_FROM = 5


class CreatableReplicaAssignment(Message):
    partition_index: int = 0
    broker_ids: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 2, 7),
        Field("broker_ids", "int32", 2, 7, array=True),
    )


class CreatableTopicConfig(Message):
    name: str = ""
    value: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 2, 7),
        Field("value", "string", 2, 7, nullable_from=2),
    )


class CreatableTopic(Message):
    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: list[CreatableReplicaAssignment] = EMPTY
    configs: list[CreatableTopicConfig] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 2, 7),
        Field("num_partitions", "int32", 2, 7),
        Field("replication_factor", "int16", 2, 7),
        Field("assignments", CreatableReplicaAssignment, 2, 7, array=True),
        Field("configs", CreatableTopicConfig, 2, 7, array=True),
    )


class CreateTopicsRequest(Message):
    topics: list[CreatableTopic] = EMPTY
    timeout_ms: int = 60000
    validate_only: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", CreatableTopic, 2, 7, array=True),
        Field("timeout_ms", "int32", 2, 7),
        Field("validate_only", "bool", 2, 7),
    )


class CreatableTopicConfigs(Message):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 5, 7),
        Field("value", "string", 5, 7, nullable_from=5),
        Field("read_only", "bool", 5, 7),
        Field("config_source", "int8", 5, 7),
        Field("is_sensitive", "bool", 5, 7),
    )


class CreatableTopicResult(Message):
    name: str = ""
    topic_id: bytes = bytes(16)
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: list[CreatableTopicConfigs] | None = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 2, 7),
        Field("topic_id", "uuid", 7, 7),
        Field("error_code", "int16", 2, 7),
        Field("error_message", "string", 2, 7, nullable_from=2),
        Field("topic_config_error_code", "int16", 5, 7, tag=0),
        Field("num_partitions", "int32", 5, 7),
        Field("replication_factor", "int16", 5, 7),
        Field("configs", CreatableTopicConfigs, 5, 7, array=True, nullable_from=5),
    )


class CreateTopicsResponse(Message):
    throttle_time_ms: int = 0
    topics: list[CreatableTopicResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 2, 7),
        Field("topics", CreatableTopicResult, 2, 7, array=True),
    )


REQUEST = CreateTopicsRequest
RESPONSE = CreateTopicsResponse
