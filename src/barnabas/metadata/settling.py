"""Settling: every partition gets the leader and ISR that the living brokers allow. Pure.

When a broker is fenced, unfenced, shuts down or is removed, only its own record says so. Settling then
changes the partitions: brokers that are fenced leave ISRs and leadership, and partitions without a leader
get one if they can. It looks only at the image, so a new controller completes what an older one began. The
work is done in portions; a portion is one change of the metadata. Partitions without a leader come first.

A broker in controlled shutdown still serves, so it is relieved of its leaderships in small portions, one with
each of its heartbeats. A partition cannot be written to from the change of its leader until its followers
fetch from the new one, and they need longer for many partitions at once.

Exception: a partition whose only replica is on a broker that has a session but is still starting keeps this
leader and its epoch. No other broker can lead it."""

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace
from itertools import islice
from typing import TypeAlias

from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.leader_rules import LeaderRules, active_brokers
from barnabas.metadata.partition_changes import Electorate, Target, change_partition, without
from barnabas.metadata.parts import PartitionImage, TopicImage
from barnabas.metadata.records import NO_LEADER, MetadataRecord, PartitionChangeRecord

# About the most partitions in one change of the metadata, so that no change blocks the broker for long.
PARTITIONS_PER_CHANGE = 2000
# The same for changes that are not urgent: of the ISR only, and the leaderships that a broker in controlled
# shutdown gives up at once.
ISRS_PER_CHANGE = 400
LEADERSHIPS_PER_CHANGE = 100

Place: TypeAlias = tuple[TopicImage, int]


def settle(image: MetadataImage, rules: LeaderRules, with_session: Set[int] = frozenset()) -> Decision[bool]:
    """Change one portion of partitions. The answer says whether there may be more to change.

    `with_session` has the brokers that have a session."""
    alive = frozenset(broker.id for broker in image.brokers.values() if not broker.fenced)
    starting = {broker_id for broker_id in with_session if _is_starting(image, broker_id)}
    leaderless: list[Place] = []
    led: list[Place] = []
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if partition.leader in alive:
                if not alive.issuperset(partition.isr):
                    led.append((topic, index))
            elif not _must_wait(partition, alive, starting):
                leaderless.append((topic, index))
    records = tuple(islice(_changes(image, leaderless, rules, alive), PARTITIONS_PER_CHANGE))
    if records:
        return Decision(records, bool(led) or len(records) == PARTITIONS_PER_CHANGE)
    records = tuple(islice(_changes(image, led, rules, alive), ISRS_PER_CHANGE))
    return Decision(records, len(records) == ISRS_PER_CHANGE)


def _must_wait(partition: PartitionImage, alive: Set[int], starting: Set[int]) -> bool:
    """Whether a partition without a living leader can get none now."""
    if partition.leader in starting and partition.replicas == (partition.leader,):
        return True
    return partition.leader == NO_LEADER and not partition.isr and alive.isdisjoint(partition.replicas)


def relieve(image: MetadataImage, broker_id: int, rules: LeaderRules) -> tuple[MetadataRecord, ...]:
    """Take a broker in controlled shutdown out of a portion of its leaderships; when it leads nothing more,
    out of the ISRs, too."""
    led: list[Place] = []
    followed: list[Place] = []
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if partition.leader == broker_id:
                led.append((topic, index))
            elif broker_id in partition.isr:
                followed.append((topic, index))
    staying = frozenset(image.brokers) - {broker_id}
    records = tuple(islice(_changes(image, led, rules, staying), LEADERSHIPS_PER_CHANGE))
    if len(records) == LEADERSHIPS_PER_CHANGE:
        return records
    return (*records, *islice(_changes(image, followed, rules, staying), ISRS_PER_CHANGE))


def _changes(
    image: MetadataImage, places: Iterable[Place], rules: LeaderRules, staying: Set[int]
) -> Iterator[PartitionChangeRecord]:
    """Leave only brokers that stay in the ISRs, and elect leaders where they are missing."""
    active = active_brokers(image)
    electorates: dict[str, Electorate] = {}
    for topic, index in places:
        electorate = electorates.get(topic.name)
        if electorate is None:
            electorate = rules.electorate(image, topic.name, active.__contains__)
            electorates[topic.name] = electorate
        partition = topic.partitions[index]
        isr = tuple(broker for broker in partition.isr if broker in staying)
        record = change_partition(topic.id, index, partition, Target.unchanged(partition, isr), electorate)
        if record is not None:
            yield record


def _is_starting(image: MetadataImage, broker_id: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.fenced and not broker.in_controlled_shutdown


def removals(
    image: MetadataImage, broker_id: int, rules: LeaderRules, *, is_unclean: bool
) -> Iterator[PartitionChangeRecord]:
    """Take a broker out of all ISRs; with `is_unclean` also out of the eligible leader replicas.

    A partition that it leads as the only replica is left alone."""
    active = active_brokers(image) - {broker_id}
    removed = (broker_id,)
    unclean = frozenset(removed) if is_unclean else frozenset()
    for topic in image.topics.values():
        electorate = None
        for index, partition in enumerate(topic.partitions):
            if broker_id not in partition.isr and broker_id not in partition.elr:
                continue
            if partition.replicas == removed and partition.leader == broker_id:
                continue
            if electorate is None:
                electorate = rules.electorate(image, topic.name, active.__contains__)
            target = replace(
                Target.unchanged(partition), isr=without(partition.isr, removed), unclean=unclean
            )
            record = change_partition(topic.id, index, partition, target, electorate)
            if record is not None:
                yield record
