"""AlterPartitionReassignments, key 45, versions 0-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 45
VERSIONS = (0, 1)
FLEXIBLE_FROM = 0


class ReassignablePartition(Message):
    partition_index: int = 0
    replicas: list[int] | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 1),
        Field("replicas", "int32", 0, 1, array=True, nullable_from=0),
    )


class ReassignableTopic(Message):
    name: str = ""
    partitions: list[ReassignablePartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 1),
        Field("partitions", ReassignablePartition, 0, 1, array=True),
    )


class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: list[ReassignableTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", 0, 1),
        Field("allow_replication_factor_change", "bool", 1, 1),
        Field("topics", ReassignableTopic, 0, 1, array=True),
    )


class ReassignablePartitionResponse(Message):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 1),
        Field("error_code", "int16", 0, 1),
        Field("error_message", "string", 0, 1, nullable_from=0),
    )


class ReassignableTopicResponse(Message):
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 1),
        Field("partitions", ReassignablePartitionResponse, 0, 1, array=True),
    )


class AlterPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 1),
        Field("allow_replication_factor_change", "bool", 1, 1),
        Field("error_code", "int16", 0, 1),
        Field("error_message", "string", 0, 1, nullable_from=0),
        Field("responses", ReassignableTopicResponse, 0, 1, array=True),
    )


REQUEST = AlterPartitionReassignmentsRequest
RESPONSE = AlterPartitionReassignmentsResponse
