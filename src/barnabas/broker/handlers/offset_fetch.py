"""OffsetFetch, key 9, versions 1-10: the offsets a group has committed.

Behaviour: a partition without a commit has offset -1 and no error; null topics means all of them.
Versions:  v5 leader epochs · v7 require_stable · v8 many groups at once (older ones are reshaped) ·
v9 member epochs · v10 topic ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.portions import changed, drained, drained_items, topics_in_portions
from barnabas.broker.shard_calls import ShardCall, call_shards
from barnabas.broker.turns import Work
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


def offset_fetch(call: Call, request: OffsetFetchRequest) -> Work[Any]:
    by_id = call.version >= TOPIC_ID_VERSION_MIN
    groups = yield from _once_each(request)
    unknown: dict[str, list[OffsetFetchResponseTopics]] = {}
    if by_id:
        for group in groups:
            unknown[group.group_id] = yield from _take_unknown(call, group)
            yield
    calls = (
        _shard_call(call, portion, request.require_stable) for group in groups for portion in _portions(group)
    )
    return (yield from call_shards(calls, lambda answers: _joined(answers, unknown)))


def _once_each(request: OffsetFetchRequest) -> Work[list[OffsetFetchRequestGroup]]:
    """Groups and topics that are repeated become one."""
    groups: dict[str, OffsetFetchRequestGroup] = {}
    for group in request.groups:
        first = groups.setdefault(group.group_id, group)
        if first is not group and first.topics is not None:
            first.topics = None if group.topics is None else first.topics + group.topics
        yield
    for group in groups.values():
        topics: dict[tuple[str, bytes], dict[int, None]] = {}
        for topic in drained(group.topics or []):
            topics.setdefault((topic.name, topic.topic_id), {}).update(dict.fromkeys(topic.partition_indexes))
            yield
        if group.topics is not None:
            group.topics = []
            for (name, topic_id), indexes in drained_items(topics):
                group.topics.append(
                    OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=list(indexes))
                )
                yield
        yield
    return list(groups.values())


def _portions(group: OffsetFetchRequestGroup) -> Iterator[OffsetFetchRequestGroup]:
    if group.topics is None:
        yield group
        return
    for topics in topics_in_portions(group.topics, "partition_indexes"):
        yield changed(group, topics=topics)


def _take_unknown(call: Call, group: OffsetFetchRequestGroup) -> Work[list[OffsetFetchResponseTopics]]:
    """Give each topic that has an id its name. Unknown ids are taken out; returns their answers."""
    unknown: list[OffsetFetchResponseTopics] = []
    known: list[OffsetFetchRequestTopics] = []
    for topic in drained(group.topics or []):
        existing = call.broker.image.topic_by_id(topic.topic_id)
        if existing is not None:
            topic.name = existing.name
            known.append(topic)
            yield
            continue
        answer = OffsetFetchResponseTopics(topic_id=topic.topic_id)
        for index in topic.partition_indexes:
            answer.partitions.append(
                OffsetFetchResponsePartitions(
                    partition_index=index, committed_offset=-1, error_code=ErrorCode.UNKNOWN_TOPIC_ID
                )
            )
            yield
        unknown.append(answer)
        yield
    if group.topics is not None:
        group.topics = known
    return unknown


def _joined(
    answers: list[OffsetFetchResponseGroup], unknown: dict[str, list[OffsetFetchResponseTopics]]
) -> Work[OffsetFetchResponse]:
    """One answer for each group from those of its portions, and for unknown topic ids."""
    groups: dict[str, OffsetFetchResponseGroup] = {}
    for answer in answers:
        first = groups.setdefault(answer.group_id, answer)
        if first is not answer:
            _add_portion(first, answer)
        yield
    for group_id, topics in unknown.items():
        group = groups[group_id]
        if not group.error_code:
            # A topic that is gone has no id by which it could be named.
            group.topics = [topic for topic in group.topics if topic.topic_id != ZERO_UUID] + topics
        yield
    return OffsetFetchResponse(groups=list(groups.values()))


def _add_portion(group: OffsetFetchResponseGroup, portion: OffsetFetchResponseGroup) -> None:
    if portion.error_code:
        group.error_code, group.topics = portion.error_code, []
    elif not group.error_code:
        if group.topics and portion.topics and group.topics[-1].name == portion.topics[0].name:
            group.topics[-1].partitions += portion.topics.pop(0).partitions
        group.topics += portion.topics


def _shard_call(call: Call, group: OffsetFetchRequestGroup, require_stable: bool) -> ShardCall:
    return ShardCall(
        lambda: call.broker.groups.shard_of(group.group_id),
        lambda machine, waiter, now_ms: machine.offset_fetch(group, require_stable),
        lambda code: OffsetFetchResponseGroup(group_id=group.group_id, error_code=code),
    )
