"""OffsetDelete, key 47, version 0: offsets of topics that nobody of the group subscribes to are forgotten."""

from __future__ import annotations

from barnabas.broker.asking import Asked, ask
from barnabas.broker.call import Call
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse


def offset_delete(call: Call, request: OffsetDeleteRequest) -> Asked:
    return ask(
        lambda: call.broker.groups.shard_of(request.group_id),
        lambda shard, asked, now_ms: shard.offset_delete(request),
        lambda code: OffsetDeleteResponse(error_code=code),
    )
