"""AlterPartitionReassignments, key 45, versions 0-1: move partitions to other brokers, or cancel that.

Behaviour: replicas must be registered brokers, as in Kafka; they need not be alive. The answer comes when the
move has begun. It ends by itself when all new replicas are in sync (metadata/reassignment.py). Null replicas
cancel a move. A partition that is named twice has one result, for the last of its replicas. Unlike Kafka, a
second move of a partition starts from its original replicas, so that a cancelled one always returns to them.
Versions:  v1 allow_replication_factor_change."""

from __future__ import annotations

from itertools import islice

from barnabas.broker.call import MESSAGES_MAX, Call
from barnabas.broker.turns import Work, run_in_turns
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.reassignment import Move
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)

# Moves that are decided and written at once.
MOVES_PER_CHANGE = 500


async def alter_partition_reassignments(
    call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    topics = await run_in_turns(_topics(request))
    may_change_factor = request.allow_replication_factor_change
    answer = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor, error_message=None
    )
    messages_left = MESSAGES_MAX
    for topic in topics:
        results = ReassignableTopicResponse(name=topic.name)
        answer.responses.append(results)
        moves: dict[tuple[str, int], Move] = {
            (topic.name, partition.partition_index): partition.replicas for partition in topic.partitions
        }
        # The memory of a long request is free for its answer.
        topic.partitions.clear()
        remaining = iter(moves.items())
        while portion := dict(islice(remaining, MOVES_PER_CHANGE)):
            try:
                outcomes = await call.broker.controller.reassign_partitions(
                    portion, may_change_factor=may_change_factor
                )
            except KafkaError as error:
                return AlterPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)
            for (_, index), outcome in outcomes.items():
                messages_left -= 1
                results.partitions.append(_result(index, outcome, messages_left >= 0))
    return answer


def _topics(request: AlterPartitionReassignmentsRequest) -> Work[list[ReassignableTopic]]:
    """Each topic once, with the partitions of all its entries."""
    topics: dict[str, ReassignableTopic] = {}
    for topic in request.topics:
        yield
        first = topics.setdefault(topic.name, topic)
        if first is not topic:
            first.partitions.extend(topic.partitions)
    return list(topics.values())


def _result(index: int, error: KafkaError | None, is_explained: bool) -> ReassignablePartitionResponse:
    if error is None:
        return ReassignablePartitionResponse(partition_index=index, error_message=None)
    # Kafka has no text for a move that was not under way.
    is_explained = is_explained and error.code != ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    text = error.message if is_explained else None
    return ReassignablePartitionResponse(partition_index=index, error_code=error.code, error_message=text)
