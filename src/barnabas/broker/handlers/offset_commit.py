"""OffsetCommit, key 8, versions 2-10: a consumer commits the offsets up to which it has read.

Behaviour: partitions that do not exist are refused one by one, the rest is committed; commits by clients that
are not in a group that has members are refused as a whole. The last offset counts where a partition is
repeated.
Versions:  v2-v4 retention time · v6 leader epochs · v7 static members · v9 member epochs · v10 topic ids."""

from __future__ import annotations

from itertools import chain
from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.portions import changed, drained, joined, once_each, topics_in_portions
from barnabas.broker.shard_calls import ShardCall, call_shards
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.groups.offset_requests import refused_commit
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TOPIC_ID_VERSION_MIN = 10


def offset_commit(call: Call, request: OffsetCommitRequest) -> Work[Any]:
    by_id = call.version >= TOPIC_ID_VERSION_MIN
    topics = yield from once_each(request.topics, lambda topic: topic.topic_id if by_id else topic.name)
    known, unknown = yield from _known_and_unknown(call, topics)
    calls = (
        _shard_call(call, changed(request, topics=portion))
        for portion in topics_in_portions(known, "partitions")
    )
    return (yield from call_shards(calls, lambda answers: _joined(answers, unknown)))


def _shard_call(call: Call, request: OffsetCommitRequest) -> ShardCall:
    return ShardCall(
        lambda: call.broker.groups.shard_of(request.group_id),
        lambda machine, waiter, now_ms: machine.offset_commit(request, call.version, now_ms),
        lambda code: refused_commit(request, code),
    )


def _known_and_unknown(
    call: Call, topics: list[OffsetCommitRequestTopic]
) -> Work[tuple[list[OffsetCommitRequestTopic], list[OffsetCommitResponseTopic]]]:
    """What can be committed, and the answers for partitions that do not exist."""
    known: list[OffsetCommitRequestTopic] = []
    unknown: list[OffsetCommitResponseTopic] = []
    by_id = call.version >= TOPIC_ID_VERSION_MIN
    image = call.broker.image
    for topic in drained(topics):
        existing = image.topic_by_id(topic.topic_id) if by_id else image.topic(topic.name)
        count = 0 if existing is None else len(existing.partitions)
        if existing is not None:
            # Offsets are kept by name, whichever way the topic was named.
            topic.name = existing.name
        absent = [part for part in topic.partitions if not 0 <= part.partition_index < count]
        if absent:
            is_unknown_id = existing is None and by_id
            code = ErrorCode.UNKNOWN_TOPIC_ID if is_unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            unknown.append((yield from _refused(topic, absent, code)))
            topic.partitions = [part for part in topic.partitions if 0 <= part.partition_index < count]
        if topic.partitions:
            known.append(topic)
        yield
    return known, unknown


def _refused(
    topic: OffsetCommitRequestTopic, partitions: list[OffsetCommitRequestPartition], code: ErrorCode
) -> Work[OffsetCommitResponseTopic]:
    answer = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
    for part in partitions:
        answer.partitions.append(
            OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
        )
        yield
    return answer


def _joined(
    answers: list[OffsetCommitResponse], unknown: list[OffsetCommitResponseTopic]
) -> Work[OffsetCommitResponse]:
    """One answer from those of all portions, and for what does not exist."""
    if len(answers) == 1 and not unknown:
        return answers[0]
    topics = chain(*(answer.topics for answer in answers), unknown)
    return OffsetCommitResponse(
        topics=(yield from joined(topics, lambda topic: (topic.name, topic.topic_id)))
    )
