"""Types that all clients use in arguments and results: partitions, offsets, nodes, topic descriptions."""

from dataclasses import dataclass
from typing import NamedTuple

from barnabas.ids import ZERO_UUID, TopicPartition, Uuid

__all__ = [
    "NO_NODE",
    "ConsumerGroupMetadata",
    "Node",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionInfo",
    "RecordMetadata",
    "SubscriptionPattern",
    "TopicDescription",
    "TopicPartition",
    "TopicPartitionInfo",
]


class OffsetAndMetadata(NamedTuple):
    """A position to commit: the offset of the next record to read, any text, and the leader epoch of the last
    record read (-1: unknown)."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time: its offset and its own timestamp, in Unix milliseconds."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class ConsumerGroupMetadata(NamedTuple):
    """A consumer in its group. With group.protocol=consumer, generation_id is the member epoch."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionPattern:
    """A regular expression in RE2 syntax, which the brokers match against topic names."""

    pattern: str


class RecordMetadata(NamedTuple):
    """Where a record was written. With acks=0 the broker does not answer, and the offset is -1."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    serialized_key_size: int
    serialized_value_size: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class Node(NamedTuple):
    """A broker: its id and the address that clients connect to."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id {self.id})"


# Used where the broker is not known.
NO_NODE = Node(-1, "", -1)


class PartitionInfo(NamedTuple):
    """One partition from the metadata; `leader` is None while it has no leader."""

    topic: str
    partition: int
    leader: Node | None
    leader_epoch: int = -1
    replicas: tuple[Node, ...] = ()
    in_sync_replicas: tuple[Node, ...] = ()
    offline_replicas: tuple[Node, ...] = ()

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class TopicPartitionInfo(NamedTuple):
    """One partition of a TopicDescription. The last two fields are None if the broker does not send them."""

    partition: int
    leader: Node | None
    leader_epoch: int
    replicas: tuple[Node, ...]
    in_sync_replicas: tuple[Node, ...]
    eligible_leader_replicas: tuple[Node, ...] | None = None
    last_known_eligible_leader_replicas: tuple[Node, ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic with its partitions. `authorized_operations` is None unless the request asked for it."""

    name: str
    partitions: tuple[TopicPartitionInfo, ...]
    topic_id: Uuid = ZERO_UUID
    is_internal: bool = False
    authorized_operations: frozenset[int] | None = None
