"""ListPartitionReassignments, key 46, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 46
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class ListPartitionReassignmentsTopics(Message):
    name: str = ""
    partition_indexes: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 0),
        Field("partition_indexes", "int32", 0, 0, array=True),
    )


class ListPartitionReassignmentsRequest(Message):
    timeout_ms: int = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", 0, 0),
        Field("topics", ListPartitionReassignmentsTopics, 0, 0, array=True, nullable_from=0),
    )


class OngoingPartitionReassignment(Message):
    partition_index: int = 0
    replicas: list[int] = EMPTY
    adding_replicas: list[int] = EMPTY
    removing_replicas: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 0),
        Field("replicas", "int32", 0, 0, array=True),
        Field("adding_replicas", "int32", 0, 0, array=True),
        Field("removing_replicas", "int32", 0, 0, array=True),
    )


class OngoingTopicReassignment(Message):
    name: str = ""
    partitions: list[OngoingPartitionReassignment] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 0),
        Field("partitions", OngoingPartitionReassignment, 0, 0, array=True),
    )


class ListPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: list[OngoingTopicReassignment] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
        Field("topics", OngoingTopicReassignment, 0, 0, array=True),
    )


REQUEST = ListPartitionReassignmentsRequest
RESPONSE = ListPartitionReassignmentsResponse
