"""DeleteGroups, key 42, versions 0-2: groups that nobody is in are removed with their offsets."""

from __future__ import annotations

from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.shard_calls import ShardCall, at_once, call_shards
from barnabas.broker.turns import Work
from barnabas.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def delete_groups(call: Call, request: DeleteGroupsRequest) -> Work[Any]:
    return call_shards(
        (_shard_call(call, group_id) for group_id in dict.fromkeys(request.groups_names)),
        at_once(lambda answers: DeleteGroupsResponse(results=answers)),
    )


def _shard_call(call: Call, group_id: str) -> ShardCall:
    return ShardCall(
        lambda: call.broker.groups.shard_of(group_id),
        lambda machine, waiter, now_ms: machine.delete_group(group_id, now_ms),
        lambda code: DeletableGroupResult(group_id=group_id, error_code=code),
    )
