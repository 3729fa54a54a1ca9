"""AlterPartitionReassignments, key 45, versions 0-1: move partitions to other brokers, or cancel that.

Behaviour: replicas must be registered brokers, as in Kafka; they need not be alive. The answer comes when the
move has begun. It ends by itself when all new replicas are in sync (metadata/reassignment.py). Null replicas
cancel a move. A partition that is named twice has one result, for the last of its replicas. Unlike Kafka, a
second move of a partition starts from its original replicas, so that a cancelled one always returns to them.
Versions:  v1 allow_replication_factor_change."""

from __future__ import annotations

from itertools import islice

from barnabas.broker.call import MESSAGES_MAX, Call
from barnabas.broker.portions import drained, drained_items
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.reassignment import Move, ReassignmentResults
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

# Moves that are decided and written at once; others have a turn in between.
MOVES_PER_CHANGE = 100


def alter_partition_reassignments(
    call: Call, request: AlterPartitionReassignmentsRequest
) -> Work[AlterPartitionReassignmentsResponse]:
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    may_change_factor = request.allow_replication_factor_change
    answers: dict[str, ReassignableTopicResponse] = {}
    moves = drained_items((yield from _moves(request, answers)))
    messages_left = MESSAGES_MAX
    while portion := dict(islice(moves, MOVES_PER_CHANGE)):
        try:
            results: ReassignmentResults = yield call.broker.controller.reassign_partitions(
                portion, may_change_factor=may_change_factor
            )
        except KafkaError as error:
            return AlterPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)
        for (name, index), error_or_none in results.items():
            messages_left -= 1
            answers[name].partitions.append(_result(index, error_or_none, messages_left >= 0))
        yield
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor,
        error_message=None,
        responses=list(answers.values()),
    )


def _moves(
    request: AlterPartitionReassignmentsRequest, answers: dict[str, ReassignableTopicResponse]
) -> Work[dict[tuple[str, int], Move]]:
    """The moves of all partitions. Adds an empty answer for each topic. The topics are taken out of the
    request: its memory, if it is long, is free for the answer."""
    moves: dict[tuple[str, int], Move] = {}
    for topic in drained(request.topics):
        yield
        if topic.name not in answers:
            answers[topic.name] = ReassignableTopicResponse(name=topic.name)
        for partition in drained(topic.partitions):
            yield
            moves[topic.name, partition.partition_index] = partition.replicas
    return moves


def _result(index: int, error: KafkaError | None, is_explained: bool) -> ReassignablePartitionResponse:
    if error is None:
        return ReassignablePartitionResponse(partition_index=index, error_message=None)
    # Kafka has no text for a move that was not under way.
    is_explained = is_explained and error.code != ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    text = error.message if is_explained else None
    return ReassignablePartitionResponse(partition_index=index, error_code=error.code, error_message=text)
