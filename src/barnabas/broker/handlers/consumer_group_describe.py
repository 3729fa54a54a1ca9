"""ConsumerGroupDescribe, key 69, versions 0-1: groups of the new protocol with members and assignments.

Versions:  v1 tells members of the classic protocol from others."""

from __future__ import annotations

from typing import Any

from barnabas.broker.authorized import group_operations
from barnabas.broker.call import Call
from barnabas.broker.shard_calls import ShardCall, call_shards
from barnabas.broker.turns import Work
from barnabas.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def consumer_group_describe(call: Call, request: ConsumerGroupDescribeRequest) -> Work[Any]:
    return call_shards(
        (_shard_call(call, group_id) for group_id in dict.fromkeys(request.group_ids)),
        lambda answers: _response(call, request, answers),
    )


def _shard_call(call: Call, group_id: str) -> ShardCall:
    return ShardCall(
        lambda: call.broker.groups.shard_of(group_id),
        lambda machine, waiter, now_ms: machine.describe_consumer_group(group_id),
        lambda code: DescribedGroup(group_id=group_id, error_code=code, error_message=code.text),
    )


def _response(
    call: Call, request: ConsumerGroupDescribeRequest, groups: list[Any]
) -> Work[ConsumerGroupDescribeResponse]:
    for group in groups:
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = group_operations(call, group.group_id)
        yield
    return ConsumerGroupDescribeResponse(groups=groups)
