"""ListGroups, key 16, versions 0-5: the groups this broker coordinates.

Versions:  v4 filter by state · v5 filter by type, and the type told."""

from __future__ import annotations

from barnabas.broker.asking import Question, ask_all
from barnabas.broker.call import Call
from barnabas.broker.later import Later
from barnabas.coordination.runtime import Shard
from barnabas.errors import ErrorCode
from barnabas.groups.shard import GroupShard
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def list_groups(call: Call, request: ListGroupsRequest) -> Later | ListGroupsResponse:
    coordinator = call.broker.groups
    if coordinator.is_loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    questions = [_question(shard, request) for shard in coordinator.shards()]
    return ask_all(
        questions,
        lambda answers: ListGroupsResponse(groups=[group for groups in answers for group in groups]),
    )


def _question(shard: Shard[GroupShard], request: ListGroupsRequest) -> Question:
    return Question(
        lambda: shard,
        lambda machine, asked, now_ms: machine.list_groups(request.states_filter, request.types_filter),
        lambda code: [],
    )
