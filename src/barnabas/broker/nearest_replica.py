"""Which replica a consumer should read from (KIP-392): one in its own rack, if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.leaders import endpoints_of
from barnabas.replication.partition import Partition

if TYPE_CHECKING:
    from barnabas.broker.call import Call

# The values of replica.selector.class; without one, consumers read from leaders.
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER = "org.apache.kafka.common.replica.LeaderSelector"


def nearest_replica(call: Call, partition: Partition, rack: str, offset: int) -> int | None:
    """The follower that the client should read `offset` from, or None if it is to read from this leader.

    Only followers that are in sync and have the offset count; of several the one with the most records."""
    leading = partition.leading
    if not rack or leading is None or call.broker.config["replica.selector.class"] != RACK_AWARE:
        return None
    racks = {node: rack for node, _, _, rack in endpoints_of(call, partition.replicas)}
    if racks.get(partition.leader) == rack:
        return None
    candidates = [
        (state.end_offset, state.caught_up_at, broker_id)
        for broker_id, state in leading.followers.items()
        if racks.get(broker_id) == rack
        and broker_id in partition.isr
        and state.log_start_offset <= offset <= state.end_offset
    ]
    return max(candidates)[2] if candidates else None
