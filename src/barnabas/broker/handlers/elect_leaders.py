"""ElectLeaders, key 43, versions 0-2: let the preferred or an out-of-sync replica lead partitions.

Behaviour: a partition that has the leader which the election would give is ELECTION_NOT_NEEDED; with one
replica that is every partition. Null partitions mean all, and leave out those. A partition that is named
twice has one result.
Versions:  v1 the type of the election, an error of the whole request.
Not done:  elections; they need several replicas."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import PartitionImage
from barnabas.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

PREFERRED, UNCLEAN = 0, 1
NO_LEADER = -1

Election = Callable[[str, int], KafkaError]


def elect_leaders(call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse:
    image = call.broker.image
    if request.election_type not in (PREFERRED, UNCLEAN):
        problem = KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
        return ElectLeadersResponse(
            error_code=problem.code,
            replica_election_results=_results(_requested(request), lambda topic, index: problem),
        )
    elect = _election(image, request.election_type)
    if request.topic_partitions is not None:
        return ElectLeadersResponse(replica_election_results=_results(_requested(request), elect))
    needed = {
        topic.name: {
            index: None
            for index in range(len(topic.partitions))
            if elect(topic.name, index).code != ErrorCode.ELECTION_NOT_NEEDED
        }
        for topic in image.topics.values()
    }
    return ElectLeadersResponse(replica_election_results=_results(needed, elect))


def _requested(request: ElectLeadersRequest) -> dict[str, dict[int, None]]:
    """The indexes of each topic, without repeats, in the order of the request."""
    topics: dict[str, dict[int, None]] = {}
    for topic in request.topic_partitions or ():
        topics.setdefault(topic.topic, {}).update(dict.fromkeys(topic.partitions))
    return topics


def _results(partitions: dict[str, dict[int, None]], elect: Election) -> list[ReplicaElectionResult]:
    return [
        ReplicaElectionResult(
            topic=topic, partition_result=[_result(index, elect(topic, index)) for index in indexes]
        )
        for topic, indexes in partitions.items()
    ]


def _result(index: int, error: KafkaError) -> PartitionResult:
    return PartitionResult(partition_id=index, error_code=error.code, error_message=error.message)


def _election(image: MetadataImage, election_type: int) -> Election:
    not_needed = KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    impossible = KafkaError(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        if election_type == PREFERRED
        else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    )

    def elect(topic: str, index: int) -> KafkaError:
        if image.topic(topic) is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}")
        partition = image.partition(topic, index)
        if partition is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{index}")
        return not_needed if _has_wanted_leader(partition, election_type) else impossible

    return elect


def _has_wanted_leader(partition: PartitionImage, election_type: int) -> bool:
    if election_type == PREFERRED:
        return partition.leader == partition.replicas[0]
    return partition.leader != NO_LEADER
