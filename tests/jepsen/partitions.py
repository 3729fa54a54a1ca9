"""What the cluster says about one partition. These questions do not pass any link."""

from tests.jepsen.faults import System

from barnabas.client.types import TopicPartitionInfo
from barnabas.ids import TopicPartition


def partition_info(system: System, place: TopicPartition) -> TopicPartitionInfo:
    with system.admin() as admin:
        return admin.describe_topics([place.topic])[place.topic].partitions[place.partition]


def in_sync_ids(system: System, place: TopicPartition) -> list[int]:
    return [node.id for node in partition_info(system, place).in_sync_replicas]


def eligible_ids(system: System, place: TopicPartition) -> list[int]:
    """Replicas that are not in sync but have every committed record (KIP-966)."""
    return [node.id for node in partition_info(system, place).eligible_leader_replicas or ()]
