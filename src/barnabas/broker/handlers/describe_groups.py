"""DescribeGroups, key 15, versions 0-6: classic groups with their members.

Versions:  v3 authorized operations · v4 static members · v6 GROUP_ID_NOT_FOUND instead of a dead group."""

from __future__ import annotations

from typing import Any

from barnabas.broker.authorized import group_operations
from barnabas.broker.call import Call
from barnabas.broker.shard_calls import ShardCall, call_shards
from barnabas.broker.turns import Work
from barnabas.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


def describe_groups(call: Call, request: DescribeGroupsRequest) -> Work[Any]:
    return call_shards(
        (_shard_call(call, group_id) for group_id in dict.fromkeys(request.groups)),
        lambda answers: _response(call, request, answers),
    )


def _shard_call(call: Call, group_id: str) -> ShardCall:
    return ShardCall(
        lambda: call.broker.groups.shard_of(group_id),
        lambda machine, waiter, now_ms: machine.describe_group(group_id, call.version),
        lambda code: DescribedGroup(group_id=group_id, error_code=code),
    )


def _response(call: Call, request: DescribeGroupsRequest, groups: list[Any]) -> Work[DescribeGroupsResponse]:
    for group in groups:
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = group_operations(call, group.group_id)
        yield
    return DescribeGroupsResponse(groups=groups)
