"""SyncGroup, key 14, versions 0-5: a member gets its assignment; the leader sends those of all members.

Versions:  v3 static members · v5 the protocol is checked, and is in the answer."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.shard_calls import ShardReply, call_shard
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync_group(call: Call, request: SyncGroupRequest) -> ShardReply:
    return call_shard(
        lambda: call.broker.groups.shard_of(request.group_id),
        lambda machine, waiter, now_ms: machine.sync_group(request, call.version, waiter, now_ms),
        lambda code: SyncGroupResponse(error_code=code),
    )
