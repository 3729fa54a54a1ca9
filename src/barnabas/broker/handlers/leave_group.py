"""LeaveGroup, key 13, versions 0-5: members leave a group, or an administrator removes them.

Versions:  v3 many members at once (older ones are reshaped) · v5 reasons."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.shard_calls import ShardReply, call_shard
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse


def leave_group(call: Call, request: LeaveGroupRequest) -> ShardReply:
    return call_shard(
        lambda: call.broker.groups.shard_of(request.group_id),
        lambda machine, waiter, now_ms: machine.leave_group(request, call.version, now_ms),
        lambda code: LeaveGroupResponse(error_code=code),
    )
