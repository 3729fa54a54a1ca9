"""Elections that someone asks for: by request (ElectLeaders), and the periodic ones of the controller. Pure.

Elections that follow from brokers that come and go are in settling.py."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from barnabas.errors import ErrorCode
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.leader_rules import LeaderRules, active_brokers
from barnabas.metadata.partition_changes import Election, Target, change_partition
from barnabas.metadata.parts import PartitionImage
from barnabas.metadata.records import PartitionChangeRecord

# As in Kafka, so many leaders change at most in one step of the automatic balancing.
ELECTIONS_PER_STEP = 1000

ElectionResults: TypeAlias = dict[tuple[str, int], ErrorCode]


def has_elected_leader(partition: PartitionImage, election: Election) -> bool:
    """Whether the partition has the leader that the election would give it."""
    if election is Election.PREFERRED:
        return partition.leader == partition.replicas[0]
    return partition.has_leader


def elect_leaders(
    image: MetadataImage, partitions: Iterable[tuple[str, int]], election: Election, rules: LeaderRules
) -> Decision[ElectionResults]:
    """One answer per partition: NONE where the leader changed."""
    results: ElectionResults = {}
    records: list[PartitionChangeRecord] = []
    active = active_brokers(image)
    for name, index in dict.fromkeys(partitions):
        partition = image.partition(name, index)
        if partition is None:
            results[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif has_elected_leader(partition, election):
            results[name, index] = ErrorCode.ELECTION_NOT_NEEDED
        else:
            record = _elect(image, name, index, election, rules, active)
            results[name, index] = ErrorCode.NONE if record is not None else _not_available(election)
            records.extend([] if record is None else [record])
    return Decision(tuple(records), results)


def _not_available(election: Election) -> ErrorCode:
    if election is Election.PREFERRED:
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def _elect(
    image: MetadataImage,
    name: str,
    index: int,
    election: Election,
    rules: LeaderRules,
    active: frozenset[int],
) -> PartitionChangeRecord | None:
    topic = image.topics[name]
    partition = topic.partitions[index]
    electorate = rules.electorate(image, name, active.__contains__, election)
    return change_partition(topic.id, index, partition, Target.unchanged(partition), electorate)


def balance_leaders(image: MetadataImage, rules: LeaderRules) -> Decision[bool]:
    """Let preferred replicas that are in sync lead again; True if there may be more of them."""
    active = active_brokers(image)
    records: list[PartitionChangeRecord] = []
    for name, index in _unbalanced(image, active):
        record = _elect(image, name, index, Election.PREFERRED, rules, active)
        if record is not None:
            records.append(record)
            if len(records) >= ELECTIONS_PER_STEP:
                return Decision(tuple(records), True)
    return Decision(tuple(records), False)


def _unbalanced(image: MetadataImage, active: frozenset[int]) -> Iterator[tuple[str, int]]:
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            preferred = partition.replicas[0]
            if partition.leader != preferred and preferred in active and preferred in partition.isr:
                yield topic.name, index
