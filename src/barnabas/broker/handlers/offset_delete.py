"""OffsetDelete, key 47, version 0: removes offsets of topics that no member of the group subscribes to.

Behaviour: partitions that do not exist are refused one by one; an error of the group is the whole answer."""

from __future__ import annotations

from itertools import chain
from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.portions import changed, joined, once_each, topics_in_portions
from barnabas.broker.shard_calls import ShardCall, call_shards
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def offset_delete(call: Call, request: OffsetDeleteRequest) -> Work[Any]:
    topics = yield from once_each(request.topics, lambda topic: topic.name)
    known, unknown = yield from _known_and_unknown(call, topics)
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


def _known_and_unknown(
    call: Call, topics: list[OffsetDeleteRequestTopic]
) -> Work[tuple[list[OffsetDeleteRequestTopic], list[OffsetDeleteResponseTopic]]]:
    """What may have offsets, and the answers for partitions that do not exist."""
    known = []
    unknown = []
    for topic in topics:
        existing = call.broker.image.topic(topic.name)
        count = 0 if existing is None else len(existing.partitions)
        refused = OffsetDeleteResponseTopic(name=topic.name)
        kept = []
        for part in topic.partitions:
            if 0 <= part.partition_index < count:
                kept.append(part)
            else:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                refused.partitions.append(
                    OffsetDeleteResponsePartition(partition_index=part.partition_index, error_code=code)
                )
            yield
        if kept:
            topic.partitions = kept
            known.append(topic)
        if refused.partitions:
            unknown.append(refused)
        yield
    return known, unknown


def _joined(
    answers: list[OffsetDeleteResponse], unknown: list[OffsetDeleteResponseTopic]
) -> Work[OffsetDeleteResponse]:
    """One answer from those of all portions, and for what does not exist."""
    for answer in answers:
        if answer.error_code:
            return answer
    topics = chain(*(answer.topics for answer in answers), unknown)
    return OffsetDeleteResponse(topics=(yield from joined(topics, lambda topic: topic.name)))
