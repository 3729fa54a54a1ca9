"""LeaveGroup, key 13, versions 0-5: members leave a group, or an administrator removes them.

Versions:  v3 many members at once (older ones are reshaped) · v5 reasons."""

from __future__ import annotations

from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.portions import changed, in_portions
from barnabas.broker.shard_calls import ShardCall, call_shards
from barnabas.broker.turns import Work
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity


def leave_group(call: Call, request: LeaveGroupRequest) -> Work[Any]:
    unique: dict[tuple[str, str | None], MemberIdentity] = {}
    for member in request.members:
        unique[member.member_id, member.group_instance_id] = member
        yield
    members = list(unique.values())
    calls = (_shard_call(call, changed(request, members=portion)) for portion in in_portions(members))
    return (yield from call_shards(calls, _joined))


def _shard_call(call: Call, request: LeaveGroupRequest) -> ShardCall:
    return ShardCall(
        lambda: call.broker.groups.shard_of(request.group_id),
        lambda machine, waiter, now_ms: machine.leave_group(request, call.version, now_ms),
        lambda code: LeaveGroupResponse(error_code=code),
    )


def _joined(answers: list[LeaveGroupResponse]) -> Work[LeaveGroupResponse]:
    """One answer from those of all portions; an error of the group is the whole answer."""
    whole = answers[0]
    for answer in answers[1:]:
        if answer.error_code:
            return answer
        whole.members += answer.members
        yield
    return whole
