"""What a client knows about its cluster at one moment: brokers, topics, leaders. It is immutable, so any
thread may read it; each refresh creates a new one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from barnabas.client.types import Node, PartitionInfo, TopicPartition
from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.ids import ZERO_UUID, Uuid
from barnabas.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class Leader(NamedTuple):
    """The leader of a partition and its epoch (-1: the broker is too old to send it)."""

    node_id: int
    epoch: int


def no_partition(topic: str, number: int, count: int) -> str:
    """The sentence about a partition that a topic does not have."""
    partitions = "1 partition" if count == 1 else f"{count} partitions"
    return f"topic {topic!r} has {partitions}; there is no partition {number}"


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """`error` is NONE for a usable topic. The partitions are sorted by number."""

    name: str
    id: Uuid = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[PartitionInfo, ...] = ()
    error: ErrorCode = ErrorCode.NONE

    def partition(self, number: int) -> PartitionInfo | None:
        # Partitions are numbered without gaps, but do not rely on the broker for that.
        if number < len(self.partitions) and self.partitions[number].partition == number:
            return self.partitions[number]
        return next((info for info in self.partitions if info.partition == number), None)


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    cluster_id: str | None = None
    controller_id: int = -1
    nodes: Mapping[int, Node] = field(default_factory=dict)
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    names: Mapping[Uuid, str] = field(default_factory=dict)

    def leader_of(self, partition: TopicPartition) -> Leader | None:
        """The leader, if it is known; sends no request."""
        topic = self.topics.get(partition.topic)
        info = topic.partition(partition.partition) if topic is not None else None
        if info is None or info.leader is None:
            return None
        return Leader(info.leader.id, info.leader_epoch)

    def partition_count(self, topic: str) -> int:
        """The number of partitions; 0 for an unknown or unusable topic."""
        known = self.topics.get(topic)
        return len(known.partitions) if known is not None else 0

    def problem_of(self, topic: str) -> str | None:
        """Why the topic cannot be used now, in a sentence; None if it can."""
        known = self.topics.get(topic)
        if known is None:
            return f"no broker has answered about topic {topic!r}"
        if known.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return f"topic {topic!r} does not exist"
        if known.error is not ErrorCode.NONE:
            return f"topic {topic!r} cannot be used: {known.error.text}"
        leaderless = [info.partition for info in known.partitions if info.leader is None]
        if leaderless:
            return f"topic {topic!r} has no leader for partition {', '.join(map(str, leaderless))}"
        return None

    def missing(self, partition: TopicPartition) -> KafkaError:
        """The error for a partition without a known leader: it says whether there is such a partition."""
        topic = self.topics.get(partition.topic)
        if topic is None or topic.error is not ErrorCode.NONE:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error
            return KafkaError(code, self.problem_of(partition.topic))
        if topic.partition(partition.partition) is None:
            text = no_partition(partition.topic, partition.partition, len(topic.partitions))
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader")

    def with_leaders(
        self, leaders: Mapping[TopicPartition, Leader], nodes: Iterable[Node]
    ) -> "ClusterMetadata":
        """New metadata with the leaders that an answer names (KIP-951), where they are newer than ours.
        `nodes` are the addresses in the answer."""
        known_nodes = {**self.nodes, **{node.id: node for node in nodes}}
        topics = dict(self.topics)
        for partition, leader in leaders.items():
            topic = topics.get(partition.topic)
            info = topic.partition(partition.partition) if topic is not None else None
            node = known_nodes.get(leader.node_id)
            if topic is None or info is None or node is None or leader.epoch <= info.leader_epoch:
                continue
            changed = info._replace(leader=node, leader_epoch=leader.epoch)
            partitions = tuple(changed if each is info else each for each in topic.partitions)
            topics[partition.topic] = replace(topic, partitions=partitions)
        return replace(self, nodes=MappingProxyType(known_nodes), topics=MappingProxyType(topics))

    def updated(self, response: MetadataResponse) -> "ClusterMetadata":
        """New metadata from an answer; partitions keep their leader if the answer has an older epoch."""
        nodes = {
            broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        }
        topics: dict[str, TopicMetadata] = {}
        for topic in response.topics:
            if topic.name:
                topics[topic.name] = _topic(topic, nodes, self.topics.get(topic.name))
        names = {topic.id: topic.name for topic in topics.values() if topic.id != ZERO_UUID}
        return ClusterMetadata(
            response.cluster_id,
            response.controller_id,
            MappingProxyType(nodes),
            MappingProxyType(topics),
            MappingProxyType(names),
        )


def _topic(
    answered: MetadataResponseTopic, nodes: Mapping[int, Node], known: TopicMetadata | None
) -> TopicMetadata:
    name = answered.name or ""
    partitions = sorted(answered.partitions, key=lambda partition: partition.partition_index)
    same = known if known is not None and known.id == answered.topic_id else None
    return TopicMetadata(
        name,
        answered.topic_id,
        answered.is_internal,
        tuple(_partition(name, partition, nodes, same) for partition in partitions),
        error_of(answered.error_code),
    )


def _partition(
    topic: str, answered: MetadataResponsePartition, nodes: Mapping[int, Node], known: TopicMetadata | None
) -> PartitionInfo:
    before = known.partition(answered.partition_index) if known is not None else None
    if before is not None and answered.leader_epoch != -1 and before.leader_epoch > answered.leader_epoch:
        # The answering broker has older metadata than another one that answered before.
        return before
    return PartitionInfo(
        topic,
        answered.partition_index,
        nodes.get(answered.leader_id),
        answered.leader_epoch,
        _nodes(answered.replica_nodes, nodes),
        _nodes(answered.isr_nodes, nodes),
        _nodes(answered.offline_replicas, nodes),
    )


def _nodes(ids: list[int], nodes: Mapping[int, Node]) -> tuple[Node, ...]:
    """The nodes with these ids. A broker that is down is not in the metadata but is still a replica."""
    return tuple(nodes.get(node_id, Node(node_id, "", -1)) for node_id in ids)
