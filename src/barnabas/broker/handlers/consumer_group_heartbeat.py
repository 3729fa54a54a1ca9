"""ConsumerGroupHeartbeat, key 68, versions 0-1: the one call of members of the new protocol (KIP-848).

Versions:  v1 member ids chosen by clients, subscriptions by regular expression."""

from __future__ import annotations

from barnabas.broker.asking import Asked, ask
from barnabas.broker.call import Call
from barnabas.broker.group_coordinator import client_of
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def consumer_group_heartbeat(call: Call, request: ConsumerGroupHeartbeatRequest) -> Asked:
    return ask(
        lambda: call.broker.groups.shard_of(request.group_id),
        lambda shard, asked, now_ms: shard.consumer_group_heartbeat(
            request, client_of(call), call.version, now_ms
        ),
        lambda code: ConsumerGroupHeartbeatResponse(error_code=code),
    )
