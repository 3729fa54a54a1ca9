"""JoinGroup, key 11, versions 0-9: a member joins a group, and waits until all members have joined.

Versions:  v4 two steps for new members · v5 static members · v7 protocol type in the answer · v9
skip_assignment."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.group_coordinator import client_of
from barnabas.broker.shard_calls import ShardReply, call_shard
from barnabas.groups.classic.answers import join_refused
from barnabas.wire.messages.join_group import JoinGroupRequest


def join_group(call: Call, request: JoinGroupRequest) -> ShardReply:
    return call_shard(
        lambda: call.broker.groups.shard_of(request.group_id),
        lambda machine, waiter, now_ms: machine.join_group(
            request, client_of(call), call.version, waiter, now_ms
        ),
        lambda code: join_refused(code, request.member_id, call.version),
    )
