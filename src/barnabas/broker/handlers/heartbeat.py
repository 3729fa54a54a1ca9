"""Heartbeat, key 12, versions 0-4: a member is alive, and learns whether its group rebalances.

Versions:  v3 static members."""

from __future__ import annotations

from barnabas.broker.asking import Asked, ask
from barnabas.broker.call import Call
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(call: Call, request: HeartbeatRequest) -> Asked:
    return ask(
        lambda: call.broker.groups.shard_of(request.group_id),
        lambda shard, asked, now_ms: shard.heartbeat(request, now_ms),
        lambda code: HeartbeatResponse(error_code=code),
    )
