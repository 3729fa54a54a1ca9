"""DeleteGroups, key 42, versions 0-2: groups that nobody is in are removed with their offsets."""

from __future__ import annotations

from barnabas.broker.asking import Question, ask_all
from barnabas.broker.call import Call
from barnabas.broker.later import Later
from barnabas.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def delete_groups(call: Call, request: DeleteGroupsRequest) -> Later:
    return ask_all(
        [_question(call, group_id) for group_id in dict.fromkeys(request.groups_names)],
        lambda answers: DeleteGroupsResponse(results=answers),
    )


def _question(call: Call, group_id: str) -> Question:
    return Question(
        lambda: call.broker.groups.shard_of(group_id),
        lambda shard, asked, now_ms: shard.delete_group(group_id, now_ms),
        lambda code: DeletableGroupResult(group_id=group_id, error_code=code),
    )
