"""AlterPartitionReassignments, key 45, versions 0-1: move partitions to other brokers, or cancel that.

Behaviour: replicas must be registered brokers, as in Kafka. Those that the partition has already are accepted
and change nothing; null replicas cancel a move, and there is none. A partition that is named twice has
one result, for the last of its replicas.
Versions:  v1 allow_replication_factor_change.
Not done:  moves; they need several brokers."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

Replicas = Sequence[int] | None


def alter_partition_reassignments(
    call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    topics: dict[str, dict[int, Replicas]] = {}
    for topic in request.topics:
        moves = topics.setdefault(topic.name, {})
        moves.update((partition.partition_index, partition.replicas) for partition in topic.partitions)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=name,
                partitions=[
                    _answer(call.broker.image, name, index, replicas) for index, replicas in moves.items()
                ],
            )
            for name, moves in topics.items()
        ],
    )


def _answer(
    image: MetadataImage, topic: str, index: int, replicas: Replicas
) -> ReassignablePartitionResponse:
    try:
        _check(image, topic, index, replicas)
    except KafkaError as error:
        # Kafka has no text for a move that was not under way.
        text = None if error.code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS else error.message
        return ReassignablePartitionResponse(partition_index=index, error_code=error.code, error_message=text)
    return ReassignablePartitionResponse(partition_index=index, error_message=None)


def _check(image: MetadataImage, topic: str, index: int, replicas: Replicas) -> None:
    if image.topic(topic) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic}.")
    partition = image.partition(topic, index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {topic}:{index}.")
    if replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    _check_replicas(image, replicas)
    if tuple(replicas) != tuple(partition.replicas):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "this release of Barnabas cannot move partitions"
        )


def _check_replicas(image: MetadataImage, replicas: Sequence[int]) -> None:
    prefix = "The manual partition assignment includes"
    if not replicas:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{prefix} an empty replica list.")
    seen: set[int] = set()
    for replica in sorted(replicas):
        if replica not in image.brokers:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{prefix} broker {replica}, but no such broker is registered.",
            )
        if replica in seen:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{prefix} the broker {replica} more than once.",
            )
        seen.add(replica)
