"""AlterPartitionReassignments, key 45, versions 0-1: move partitions to other brokers, or cancel that.

Behaviour: replicas must be registered brokers, as in Kafka. Those that the partition has already are accepted
and change nothing; null replicas cancel a move, and there is none. A partition that is named twice has
one result, for the last of its replicas.
Versions:  v1 allow_replication_factor_change.
Not done:  moves; they need several brokers."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.broker.call import MESSAGES_MAX, Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TOPIC_NAME_LENGTH_MAX
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)

Replicas = Sequence[int] | None


def alter_partition_reassignments(
    call: Call, request: AlterPartitionReassignmentsRequest
) -> Work[AlterPartitionReassignmentsResponse]:
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    topics: dict[str, ReassignableTopic] = {}
    for topic in request.topics:
        yield
        first = topics.setdefault(topic.name, topic)
        if first is not topic:
            first.partitions.extend(topic.partitions)
    answer = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None
    )
    messages_left = MESSAGES_MAX
    for topic in topics.values():
        results = ReassignableTopicResponse(name=topic.name)
        answer.responses.append(results)
        moves = {partition.partition_index: partition.replicas for partition in topic.partitions}
        # The memory of a long request is free for its answer.
        topic.partitions.clear()
        for index, replicas in moves.items():
            yield
            messages_left -= 1
            result = _answer(call.broker.image, topic.name, index, replicas)
            if messages_left < 0:
                result.error_message = None
            results.partitions.append(result)
    return answer


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
    name = topic[:TOPIC_NAME_LENGTH_MAX]
    if image.topic(topic) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = image.partition(topic, index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
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
