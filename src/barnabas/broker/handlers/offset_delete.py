"""OffsetDelete, key 47, version 0: removes offsets of topics that no member of the group subscribes to.

Behaviour: partitions that do not exist are refused one by one; an error of the group is the whole answer."""

from __future__ import annotations

from itertools import chain
from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.portions import changed, joined, known_and_unknown, once_each, topics_in_portions
from barnabas.broker.shard_calls import ShardCall, call_shards
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def offset_delete(call: Call, request: OffsetDeleteRequest) -> Work[Any]:
    topics = yield from once_each(request.topics, lambda topic: topic.name)
    known, unknown = yield from known_and_unknown(
        call.broker.image, topics, lambda name: OffsetDeleteResponseTopic(name=name), _refused
    )
    calls = (
        _shard_call(call, changed(request, topics=portion))
        for portion in topics_in_portions(known, "partitions")
    )
    return (yield from call_shards(calls, lambda answers: _joined(answers, unknown)))


def _shard_call(call: Call, request: OffsetDeleteRequest) -> ShardCall:
    return ShardCall(
        lambda: call.broker.groups.shard_of(request.group_id),
        lambda machine, waiter, now_ms: machine.offset_delete(request),
        lambda code: OffsetDeleteResponse(error_code=code),
    )


def _refused(index: int, code: ErrorCode) -> OffsetDeleteResponsePartition:
    return OffsetDeleteResponsePartition(partition_index=index, error_code=code)


def _joined(
    answers: list[OffsetDeleteResponse], unknown: list[OffsetDeleteResponseTopic]
) -> Work[OffsetDeleteResponse]:
    """One answer from those of all portions, and for what does not exist."""
    for answer in answers:
        if answer.error_code:
            return answer
    topics = chain(*(answer.topics for answer in answers), unknown)
    return OffsetDeleteResponse(topics=(yield from joined(topics, lambda topic: topic.name)))
