"""OffsetDelete, key 47, version 0: offsets of topics that nobody of the group subscribes to are forgotten.

Behaviour: partitions that do not exist are refused one by one; an error of the group is the whole answer."""

from __future__ import annotations

from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.later import Later
from barnabas.broker.shard_calls import call_shard
from barnabas.errors import ErrorCode
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def offset_delete(call: Call, request: OffsetDeleteRequest) -> Later:
    strangers = _without_strangers(call, request)
    whole = Later()
    reply = call_shard(
        lambda: call.broker.groups.shard_of(request.group_id),
        lambda machine, waiter, now_ms: machine.offset_delete(request),
        lambda code: OffsetDeleteResponse(error_code=code),
    )
    reply.then(lambda answer: whole.resolve(_with(answer, strangers)))
    return whole


def _without_strangers(call: Call, request: OffsetDeleteRequest) -> dict[str, list[int]]:
    """Takes out of the request what does not exist."""
    strangers: dict[str, list[int]] = {}
    for topic in request.topics:
        found = call.broker.image.topic(topic.name)
        count = 0 if found is None else len(found.partitions)
        for partition in topic.partitions:
            if not 0 <= partition.partition_index < count:
                strangers.setdefault(topic.name, []).append(partition.partition_index)
        topic.partitions = [part for part in topic.partitions if 0 <= part.partition_index < count]
    request.topics = [topic for topic in request.topics if topic.partitions]
    return strangers


def _with(answer: Any, strangers: dict[str, list[int]]) -> OffsetDeleteResponse:
    response: OffsetDeleteResponse = answer
    if response.error_code:
        return response
    by_name = {topic.name: topic for topic in response.topics}
    for name, numbers in strangers.items():
        if name not in by_name:
            by_name[name] = OffsetDeleteResponseTopic(name=name)
            response.topics.append(by_name[name])
        by_name[name].partitions += [
            OffsetDeleteResponsePartition(
                partition_index=number, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            for number in numbers
        ]
    return response
