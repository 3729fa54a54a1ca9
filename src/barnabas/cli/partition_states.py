"""In which states of replication a partition is; `topics --describe` and `cluster status` print them."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.client.admin import Admin, ConfigEntry, PartitionReassignment
from barnabas.client.errors import UnsupportedVersionError
from barnabas.client.types import TopicPartition, TopicPartitionInfo

Moves = Mapping[TopicPartition, PartitionReassignment]


class PartitionStates(NamedTuple):
    is_under_replicated: bool
    is_under_min_isr: bool
    is_at_min_isr: bool
    is_unavailable: bool


def states_of(
    info: TopicPartitionInfo, move: PartitionReassignment | None, in_sync_min: int, live: Collection[int]
) -> PartitionStates:
    """`live`: the ids of the brokers that serve."""
    in_sync = len(info.in_sync_replicas)
    return PartitionStates(
        in_sync < replication_factor(info, move),
        info.leader is None or in_sync < in_sync_min,
        in_sync == in_sync_min,
        info.leader is None or info.leader.id not in live,
    )


def replication_factor(info: TopicPartitionInfo, move: PartitionReassignment | None) -> int:
    """The number of replicas, without those that a running move is adding. A finished move is ignored."""
    if move is not None:
        changing = {*move.adding_replicas, *move.removing_replicas}
        if any(node.id in changing for node in info.replicas):
            return len(move.replicas) - len(move.adding_replicas)
    return len(info.replicas)


def in_sync_min_of(configs: Mapping[str, ConfigEntry]) -> int:
    """The min.insync.replicas of a topic with these settings."""
    return int(configs["min.insync.replicas"].value or 1) if "min.insync.replicas" in configs else 1


def running_moves(admin: Admin, partitions: Collection[TopicPartition] | None = None) -> Moves:
    """Those of the partitions (None: all) that are moving between brokers."""
    try:
        return admin.list_partition_reassignments(partitions) if partitions or partitions is None else {}
    except UnsupportedVersionError:
        # A broker without this API does not move partitions.
        return {}
