"""What happened in the cluster since the console looks at it: in-sync sets, elections, brokers,
reassignments.

It is found by comparing samples, so what comes and goes between two samples is not seen."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from barnabas.client.admin import PartitionReassignment
from barnabas.client.metadata import ClusterMetadata, TopicMetadata
from barnabas.client.types import PartitionInfo, TopicPartition
from barnabas.console.series import now_ms

EVENTS_MAX = 2000
# After the loss of a broker, thousands of partitions may change at once.
EVENTS_OF_ONE_SAMPLE_MAX = 100

Event = dict[str, Any]


class Timeline:
    def __init__(self, publish: Callable[[Event], None]) -> None:
        self._publish = publish
        self._events: deque[Event] = deque(maxlen=EVENTS_MAX)
        self._metadata: ClusterMetadata | None = None
        self._moving: Mapping[TopicPartition, PartitionReassignment] | None = None

    def newest(self, count: int, topic: str | None = None) -> list[Event]:
        found = (event for event in reversed(self._events) if topic in (None, event["topic"]))
        return [event for event, _ in zip(found, range(count), strict=False)]

    def take_metadata(self, metadata: ClusterMetadata) -> None:
        before, self._metadata = self._metadata, metadata
        if before is not None:
            self._add(_changes(before, metadata))

    def take_reassignments(self, moving: Mapping[TopicPartition, PartitionReassignment]) -> None:
        before, self._moving = self._moving, dict(moving)
        if before is not None:
            self._add(_moves(before, moving))

    def _add(self, events: Iterable[Event]) -> None:
        left_out = 0
        for number, event in enumerate(events):
            if number < EVENTS_OF_ONE_SAMPLE_MAX:
                self._append(event)
            else:
                left_out += 1
        if left_out:
            self._append(_event("isr", f"{left_out} more partitions changed at the same time."))

    def _append(self, event: Event) -> None:
        self._events.append(event)
        self._publish(event)


def _event(kind: str, text: str, partition: PartitionInfo | None = None) -> Event:
    event: Event = {"time_ms": now_ms(), "kind": kind, "text": text, "topic": None, "partition": None}
    event |= {"isr": None, "leader": None, "leader_epoch": None}
    if partition is not None:
        event |= {
            "topic": partition.topic,
            "partition": partition.partition,
            "isr": [node.id for node in partition.in_sync_replicas],
            "leader": None if partition.leader is None else partition.leader.id,
            "leader_epoch": partition.leader_epoch,
        }
    return event


def _changes(before: ClusterMetadata, after: ClusterMetadata) -> Iterable[Event]:
    for id_ in sorted(before.nodes.keys() - after.nodes.keys()):
        yield _event("broker", f"Broker {id_} is gone.")
    for id_ in sorted(after.nodes.keys() - before.nodes.keys()):
        yield _event("broker", f"Broker {id_} is here.")
    if before.controller_id != after.controller_id and after.controller_id >= 0:
        yield _event("broker", f"The controller is now broker {after.controller_id}.")
    for name, topic in after.topics.items():
        known = before.topics.get(name)
        if known is not None and known.id == topic.id and known.partitions != topic.partitions:
            yield from _partition_changes(known, topic)


def _partition_changes(before: TopicMetadata, after: TopicMetadata) -> Iterable[Event]:
    for new in after.partitions:
        old = before.partition(new.partition)
        if old is None or old == new:
            continue
        name = f"{new.topic}-{new.partition}"
        if _id(old) != _id(new) or old.leader_epoch != new.leader_epoch:
            leader = "nobody" if new.leader is None else f"broker {new.leader.id}"
            yield _event("election", f"{name}: the leader is {leader}, epoch {new.leader_epoch}.", new)
        if set(old.in_sync_replicas) != set(new.in_sync_replicas):
            yield _event("isr", f"{name}: {_isr_change(old, new)}", new)


def _id(partition: PartitionInfo) -> int:
    return -1 if partition.leader is None else partition.leader.id


def _isr_change(old: PartitionInfo, new: PartitionInfo) -> str:
    before, after = ({node.id for node in each.in_sync_replicas} for each in (old, new))
    left, joined = sorted(before - after), sorted(after - before)
    parts = [f"broker {id_} is out of sync" for id_ in left] + [f"broker {id_} is in sync" for id_ in joined]
    return f"{', '.join(parts)}." if parts else "the in-sync replicas changed."


def _moves(
    before: Mapping[TopicPartition, PartitionReassignment],
    after: Mapping[TopicPartition, PartitionReassignment],
) -> Iterable[Event]:
    for partition, move in after.items():
        if partition not in before:
            adding, removing = list(move.adding_replicas), list(move.removing_replicas)
            yield _of_partition(partition, f"{partition} moves: adding {adding}, removing {removing}.")
    for partition in before.keys() - after.keys():
        yield _of_partition(partition, f"{partition} does not move any more.")


def _of_partition(partition: TopicPartition, text: str) -> Event:
    return {**_event("reassignment", text), "topic": partition.topic, "partition": partition.partition}
