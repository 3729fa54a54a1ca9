"""Settling: every partition gets the leader and ISR that the living brokers allow. Pure.

When a broker is fenced, unfenced, shuts down or is removed, only its own record says so. Settling then
changes the partitions: brokers that are not active leave ISRs and leadership, and partitions without a leader
get one if they can. It looks only at the image, so a new controller completes what an older one began. The
work is done in portions; a portion is one change of the metadata.

Exception: a partition whose only replica is on a broker that has a session but is still starting keeps this
leader and its epoch. No other broker can lead it."""

from collections.abc import Iterator, Set
from dataclasses import replace

from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.leader_rules import LeaderRules, active_brokers
from barnabas.metadata.partition_changes import Target, change_partition, without
from barnabas.metadata.records import NO_LEADER, MetadataRecord, PartitionChangeRecord

# About the most partitions in one change of the metadata, so that no change blocks the broker for long.
PARTITIONS_PER_CHANGE = 2000


def settle(image: MetadataImage, rules: LeaderRules, with_session: Set[int] = frozenset()) -> Decision[bool]:
    """Change one portion of partitions. The answer says whether there may be more to change.

    `with_session` has the brokers that have a session."""
    active = active_brokers(image)
    starting = {broker_id for broker_id in with_session if _is_starting(image, broker_id)}
    records: list[MetadataRecord] = []
    for topic in image.topics.values():
        electorate = None
        for index, partition in enumerate(topic.partitions):
            if partition.leader in active and active.issuperset(partition.isr):
                continue
            if partition.leader in starting and partition.replicas == (partition.leader,):
                continue
            if partition.leader == NO_LEADER and not partition.isr and active.isdisjoint(partition.replicas):
                continue
            if electorate is None:
                electorate = rules.electorate(image, topic.name, active.__contains__)
            isr = tuple(broker for broker in partition.isr if broker in active)
            target = Target.unchanged(partition, isr)
            record = change_partition(topic.id, index, partition, target, electorate)
            if record is not None:
                records.append(record)
                if len(records) >= PARTITIONS_PER_CHANGE:
                    return Decision(tuple(records), True)
    return Decision(tuple(records), False)


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
