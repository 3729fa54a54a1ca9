"""OffsetFetch, key 9, versions 1-10: the offsets a group has committed.

Behaviour: a partition without a commit has offset -1 and no error; null topics means all of them.
Versions:  v5 leader epochs · v7 require_stable · v8 many groups at once (older ones are reshaped) ·
v9 member epochs · v10 topic ids."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.later import Later
from barnabas.broker.shard_calls import ShardCall, call_shards
from barnabas.errors import ErrorCode
from barnabas.ids import ZERO_UUID
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

TOPIC_ID_VERSION_MIN = 10


def offset_fetch(call: Call, request: OffsetFetchRequest) -> Later:
    by_id = call.version >= TOPIC_ID_VERSION_MIN
    strangers = [_take_strangers(call, group) if by_id else [] for group in request.groups]
    return call_shards(
        [_shard_call(call, group, request.require_stable) for group in request.groups],
        lambda answers: OffsetFetchResponse(
            groups=[
                _with(group, unknown) if by_id else group
                for group, unknown in zip(answers, strangers, strict=True)
            ]
        ),
    )


def _take_strangers(call: Call, group: OffsetFetchRequestGroup) -> list[OffsetFetchResponseTopics]:
    """Give each topic asked by id its name; the answers for ids nobody knows, which are taken out."""
    strangers: list[OffsetFetchResponseTopics] = []
    known: list[OffsetFetchRequestTopics] = []
    for topic in group.topics or ():
        found = call.broker.image.topic_by_id(topic.topic_id)
        if found is not None:
            topic.name = found.name
            known.append(topic)
            continue
        partitions = [
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, error_code=ErrorCode.UNKNOWN_TOPIC_ID
            )
            for index in topic.partition_indexes
        ]
        strangers.append(OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=partitions))
    if group.topics is not None:
        group.topics = known
    return strangers


def _with(
    group: OffsetFetchResponseGroup, strangers: list[OffsetFetchResponseTopics]
) -> OffsetFetchResponseGroup:
    """Topics that are gone have no id by which they could be told."""
    if not group.error_code:
        group.topics = [topic for topic in group.topics if topic.topic_id != ZERO_UUID] + strangers
    return group


def _shard_call(call: Call, group: OffsetFetchRequestGroup, require_stable: bool) -> ShardCall:
    return ShardCall(
        lambda: call.broker.groups.shard_of(group.group_id),
        lambda machine, waiter, now_ms: machine.offset_fetch(group, require_stable),
        lambda code: OffsetFetchResponseGroup(group_id=group.group_id, error_code=code),
    )
