"""ElectLeaders, key 43, versions 0-2: let the preferred or an out-of-sync replica lead partitions.

Behaviour: a partition that has the leader which the election would give is ELECTION_NOT_NEEDED; with one
replica that is every partition. Null partitions mean all, and leave out those. A partition that is named
twice has one result.
Versions:  v1 the type of the election, an error of the whole request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from barnabas.broker.call import MESSAGES_MAX, Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TOPIC_NAME_LENGTH_MAX
from barnabas.metadata.elections import ELECTIONS_PER_STEP, ElectionResults, has_elected_leader
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_changes import Election
from barnabas.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

# Kafka's numbers of the types.
ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}
NOT_NEEDED = KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")

# What becomes of a partition; None if it has a new leader.
Outcome = Callable[[str, int], KafkaError | None]


def elect_leaders(call: Call, request: ElectLeadersRequest) -> Work[ElectLeadersResponse]:
    answer = ElectLeadersResponse()
    election = ELECTIONS.get(request.election_type)
    if election is None:
        refusal = KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
        answer.error_code = refusal.code
        requested = yield from _requested(request.topic_partitions or ())
        yield from _add_results(answer, requested, lambda topic, index: refusal)
        return answer
    image, left_out = call.broker.image, None
    partitions: Mapping[str, Iterable[int]]
    if request.topic_partitions is None:
        partitions = {topic.name: range(len(topic.partitions)) for topic in image.topics.values()}
        left_out = ErrorCode.ELECTION_NOT_NEEDED
    else:
        partitions = yield from _requested(request.topic_partitions)
    try:
        without_leader = yield from _without_leader(image, partitions, election)
        results = yield from _elect(call, without_leader, election)
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    yield from _add_results(answer, partitions, _outcome(image, results), left_out)
    return answer


def _elect(call: Call, partitions: list[tuple[str, int]], election: Election) -> Work[ElectionResults]:
    results: ElectionResults = {}
    for start in range(0, len(partitions), ELECTIONS_PER_STEP):
        portion = partitions[start : start + ELECTIONS_PER_STEP]
        results |= yield call.broker.controller.elect_leaders(portion, election)
        yield
    return results


def _without_leader(
    image: MetadataImage, partitions: Mapping[str, Iterable[int]], election: Election
) -> Work[list[tuple[str, int]]]:
    """The partitions that the election may change."""
    needed = []
    for topic, indexes in partitions.items():
        for index in indexes:
            yield
            partition = image.partition(topic, index)
            if partition is not None and not has_elected_leader(partition, election):
                needed.append((topic, index))
    return needed


def _outcome(image: MetadataImage, results: ElectionResults) -> Outcome:
    def outcome(topic: str, index: int) -> KafkaError | None:
        code = results.get((topic, index), ErrorCode.ELECTION_NOT_NEEDED)
        if code is ErrorCode.NONE:
            return None
        name = topic[:TOPIC_NAME_LENGTH_MAX]
        if image.topic(topic) is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
        if image.partition(topic, index) is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
        return NOT_NEEDED if code is ErrorCode.ELECTION_NOT_NEEDED else KafkaError(code)

    return outcome


def _add_results(
    answer: ElectLeadersResponse,
    partitions: Mapping[str, Iterable[int]],
    outcome: Outcome,
    left_out: ErrorCode | None = None,
) -> Work[None]:
    """One result for each partition, except those whose error is `left_out`."""
    messages_left = MESSAGES_MAX
    for topic, indexes in partitions.items():
        results = ReplicaElectionResult(topic=topic)
        answer.replica_election_results.append(results)
        for index in dict.fromkeys(indexes):
            yield
            error = outcome(topic, index)
            if error is None or error.code != left_out:
                messages_left -= error is not None
                results.partition_result.append(_result(index, error, messages_left >= 0))


def _requested(topics: Iterable[TopicPartitions]) -> Work[dict[str, list[int]]]:
    """The partitions of each topic, with repeats."""
    partitions: dict[str, list[int]] = {}
    for topic in topics:
        yield
        first = partitions.setdefault(topic.topic, topic.partitions)
        if first is not topic.partitions:
            first.extend(topic.partitions)
    return partitions


def _result(index: int, error: KafkaError | None, is_explained: bool) -> PartitionResult:
    if error is None:
        return PartitionResult(partition_id=index, error_message=None)
    message = error.message if is_explained else None
    return PartitionResult(partition_id=index, error_code=error.code, error_message=message)
