"""Heartbeat, key 12, versions 0-4: a member is alive, and learns whether its group rebalances.

Versions:  v3 static members."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.shard_calls import ShardReply, call_shard
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(call: Call, request: HeartbeatRequest) -> ShardReply:
    return call_shard(
        lambda: call.broker.groups.shard_of(request.group_id),
        lambda machine, waiter, now_ms: machine.heartbeat(request, now_ms),
        lambda code: HeartbeatResponse(error_code=code),
    )
