"""ElectLeaders, key 43, versions 0-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 43
VERSIONS = (0, 2)
FLEXIBLE_FROM = 2


class TopicPartitions(Message):
    topic: str = ""
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 0, 2),
        Field("partitions", "int32", 0, 2, array=True),
    )


class ElectLeadersRequest(Message):
    election_type: int = 0
    topic_partitions: list[TopicPartitions] | None = EMPTY
    timeout_ms: int = 60000

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("election_type", "int8", 1, 2),
        Field("topic_partitions", TopicPartitions, 0, 2, array=True, nullable_from=0),
        Field("timeout_ms", "int32", 0, 2),
    )


class PartitionResult(Message):
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_id", "int32", 0, 2),
        Field("error_code", "int16", 0, 2),
        Field("error_message", "string", 0, 2, nullable_from=0),
    )


class ReplicaElectionResult(Message):
    topic: str = ""
    partition_result: list[PartitionResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 0, 2),
        Field("partition_result", PartitionResult, 0, 2, array=True),
    )


class ElectLeadersResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: list[ReplicaElectionResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 2),
        Field("error_code", "int16", 1, 2),
        Field("replica_election_results", ReplicaElectionResult, 0, 2, array=True),
    )


REQUEST = ElectLeadersRequest
RESPONSE = ElectLeadersResponse
