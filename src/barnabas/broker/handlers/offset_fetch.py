"""OffsetFetch, key 9, versions 1-10: the offsets a group has committed.

Behaviour: a partition without a commit has offset -1 and no error; null topics means all of them.
Versions:  v5 leader epochs · v7 require_stable · v8 many groups at once (older ones are reshaped) ·
v9 member epochs · v10 topic ids."""

from __future__ import annotations

from barnabas.broker.asking import Question, ask_all
from barnabas.broker.call import Call
from barnabas.broker.later import Later
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)


def offset_fetch(call: Call, request: OffsetFetchRequest) -> Later:
    return ask_all(
        [_question(call, group, request.require_stable) for group in request.groups],
        lambda answers: OffsetFetchResponse(groups=answers),
    )


def _question(call: Call, group: OffsetFetchRequestGroup, require_stable: bool) -> Question:
    return Question(
        lambda: call.broker.groups.shard_of(group.group_id),
        lambda shard, asked, now_ms: shard.offset_fetch(group, require_stable),
        lambda code: OffsetFetchResponseGroup(group_id=group.group_id, error_code=code),
    )
