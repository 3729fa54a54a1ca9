"""ListGroups, key 16, versions 0-5: the groups this broker coordinates.

Versions:  v4 filter by state · v5 filter by type, and the type in the answer."""

from __future__ import annotations

from itertools import chain
from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.portions import drained
from barnabas.broker.shard_calls import ShardCall, at_once, call_shards
from barnabas.broker.turns import Work
from barnabas.coordination.runtime import Shard
from barnabas.errors import ErrorCode
from barnabas.groups.machine import GroupMachine
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def list_groups(call: Call, request: ListGroupsRequest) -> Work[Any]:
    coordinator = call.broker.groups
    if coordinator.is_loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states = yield from _lower_case(request.states_filter)
    types = yield from _lower_case(request.types_filter)
    return (
        yield from call_shards(
            [_shard_call(shard, states, types) for shard in coordinator.shards()],
            at_once(lambda answers: ListGroupsResponse(groups=list(chain.from_iterable(answers)))),
        )
    )


def _lower_case(names: list[str]) -> Work[set[str]]:
    """Take the names out of the list. In a filter upper and lower case are the same."""
    lowered = set()
    for name in drained(names):
        lowered.add(name.strip().lower())
        yield
    return lowered


def _shard_call(shard: Shard[GroupMachine], states: set[str], types: set[str]) -> ShardCall:
    return ShardCall(
        lambda: shard,
        lambda machine, waiter, now_ms: machine.list_groups(states, types),
        lambda code: [],
    )
