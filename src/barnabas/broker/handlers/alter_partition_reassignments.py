"""AlterPartitionReassignments, key 45, versions 0-1: move partitions to other brokers, or cancel that.

Behaviour: replicas must be registered brokers, as in Kafka; they need not be alive. The answer comes when the
move has begun. It ends by itself when all new replicas are in sync (metadata/reassignment.py). Null replicas
cancel a move. A partition that is named twice has one result, for the last of its replicas. Unlike Kafka, a
second move of a partition starts from its original replicas, so that a cancelled one always returns to them.
Versions:  v1 allow_replication_factor_change."""

from __future__ import annotations

from itertools import islice

from barnabas.broker.call import MESSAGES_MAX, Call
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
    results: ReassignmentResults = {}
    moves = iter((yield from _moves(request)).items())
    while portion := dict(islice(moves, MOVES_PER_CHANGE)):
        try:
            results |= yield call.broker.controller.reassign_partitions(
                portion, may_change_factor=may_change_factor
            )
        except KafkaError as error:
            return AlterPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)
        yield
    answer = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor, error_message=None
    )
    yield from _add_results(answer, request, results)
    return answer


def _moves(request: AlterPartitionReassignmentsRequest) -> Work[dict[tuple[str, int], Move]]:
    """The moves of all partitions. The partitions are removed from the request: its memory, if it is long,
    is free for the answer."""
    moves: dict[tuple[str, int], Move] = {}
    for topic in request.topics:
        yield
        for partition in topic.partitions:
            yield
            moves[topic.name, partition.partition_index] = partition.replicas
        topic.partitions.clear()
    return moves


def _add_results(
    answer: AlterPartitionReassignmentsResponse,
    request: AlterPartitionReassignmentsRequest,
    results: ReassignmentResults,
) -> Work[None]:
    topics: dict[str, ReassignableTopicResponse] = {}
    for topic in request.topics:
        yield
        topics.setdefault(topic.name, ReassignableTopicResponse(name=topic.name))
    messages_left = MESSAGES_MAX
    for (name, index), error in results.items():
        yield
        messages_left -= 1
        topics[name].partitions.append(_result(index, error, messages_left >= 0))
    answer.responses = list(topics.values())


def _result(index: int, error: KafkaError | None, is_explained: bool) -> ReassignablePartitionResponse:
    if error is None:
        return ReassignablePartitionResponse(partition_index=index, error_message=None)
    # Kafka has no text for a move that was not under way.
    is_explained = is_explained and error.code != ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    text = error.message if is_explained else None
    return ReassignablePartitionResponse(partition_index=index, error_code=error.code, error_message=text)
