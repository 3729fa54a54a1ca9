"""ElectLeaders, key 43, versions 0-2: let the preferred or an out-of-sync replica lead partitions.

Behaviour: a partition that has the leader which the election would give is ELECTION_NOT_NEEDED; with one
replica that is every partition. Null partitions mean all, and leave out those. A partition that is named
twice has one result.
Versions:  v1 the type of the election, an error of the whole request.
Not done:  elections; they need several replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from barnabas.broker.call import MESSAGES_MAX, Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TOPIC_NAME_LENGTH_MAX
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import PartitionImage
from barnabas.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

PREFERRED, UNCLEAN = 0, 1
NO_LEADER = -1

Election = Callable[[str, int], KafkaError]


def elect_leaders(call: Call, request: ElectLeadersRequest) -> Work[ElectLeadersResponse]:
    image = call.broker.image
    answer = ElectLeadersResponse()
    elect = _election(image, request.election_type)
    if elect is None:
        refusal = KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
        answer.error_code = refusal.code
        requested = yield from _requested(request.topic_partitions or ())
        yield from _add_results(answer, requested, lambda topic, index: refusal)
    elif request.topic_partitions is None:
        everything = {topic.name: range(len(topic.partitions)) for topic in image.topics.values()}
        yield from _add_results(answer, everything, elect, ErrorCode.ELECTION_NOT_NEEDED)
    else:
        requested = yield from _requested(request.topic_partitions)
        yield from _add_results(answer, requested, elect)
    return answer


def _add_results(
    answer: ElectLeadersResponse,
    partitions: Mapping[str, Iterable[int]],
    elect: Election,
    left_out: ErrorCode | None = None,
) -> Work[None]:
    """One result for each partition, except those whose error is `left_out`."""
    messages_left = MESSAGES_MAX
    for topic, indexes in partitions.items():
        results = ReplicaElectionResult(topic=topic)
        answer.replica_election_results.append(results)
        for index in dict.fromkeys(indexes):
            yield
            error = elect(topic, index)
            if error.code != left_out:
                messages_left -= 1
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


def _result(index: int, error: KafkaError, is_explained: bool) -> PartitionResult:
    message = error.message if is_explained else None
    return PartitionResult(partition_id=index, error_code=error.code, error_message=message)


def _election(image: MetadataImage, election_type: int) -> Election | None:
    """What an election says about a partition; None where there is no such type of election."""
    if election_type not in (PREFERRED, UNCLEAN):
        return None
    not_needed = KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    impossible = KafkaError(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        if election_type == PREFERRED
        else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    )

    def elect(topic: str, index: int) -> KafkaError:
        name = topic[:TOPIC_NAME_LENGTH_MAX]
        if image.topic(topic) is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
        partition = image.partition(topic, index)
        if partition is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
        return not_needed if _has_wanted_leader(partition, election_type) else impossible

    return elect


def _has_wanted_leader(partition: PartitionImage, election_type: int) -> bool:
    if election_type == PREFERRED:
        return partition.leader == partition.replicas[0]
    return partition.leader != NO_LEADER
