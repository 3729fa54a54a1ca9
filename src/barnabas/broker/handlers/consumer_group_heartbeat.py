"""ConsumerGroupHeartbeat, key 68, versions 0-1: the one call of members of the new protocol (KIP-848).

Versions:  v1 member ids chosen by clients, subscriptions by regular expression."""

from __future__ import annotations

from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.group_coordinator import client_of
from barnabas.broker.shard_calls import ShardReply, call_shard
from barnabas.groups.machine import GroupMachine
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def consumer_group_heartbeat(call: Call, request: ConsumerGroupHeartbeatRequest) -> ShardReply:
    def decide(machine: GroupMachine, waiter: Any, now_ms: int) -> Any:
        with call.broker.groups.seen_by(call.session):
            return machine.consumer_group_heartbeat(request, client_of(call), call.version, now_ms)

    return call_shard(
        lambda: call.broker.groups.shard_of(request.group_id),
        decide,
        lambda code: ConsumerGroupHeartbeatResponse(error_code=code),
    )
