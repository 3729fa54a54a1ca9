"""OffsetCommit, key 8, versions 2-10: a consumer says how far it has come.

Behaviour: partitions that do not exist are refused one by one, the rest is committed; commits by strangers
to a group that has members are refused as a whole.
Versions:  v2-v4 retention time · v6 leader epochs · v7 static members · v9 member epochs · v10 topic ids."""

from __future__ import annotations

from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.later import Later
from barnabas.broker.shard_calls import call_shard
from barnabas.errors import ErrorCode
from barnabas.groups.offset_requests import refused_commit
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TOPIC_ID_VERSION_MIN = 10


def offset_commit(call: Call, request: OffsetCommitRequest) -> Later:
    known, strangers = _known_and_strangers(call, request)
    request.topics = known
    whole = Later()
    reply = call_shard(
        lambda: call.broker.groups.shard_of(request.group_id),
        lambda machine, waiter, now_ms: machine.offset_commit(request, call.version, now_ms),
        lambda code: refused_commit(request, code),
    )
    reply.then(lambda answer: whole.resolve(_with(answer, strangers)))
    return whole


def _known_and_strangers(
    call: Call, request: OffsetCommitRequest
) -> tuple[list[OffsetCommitRequestTopic], list[OffsetCommitResponseTopic]]:
    """What can be committed, and the answers for partitions that do not exist."""
    known: list[OffsetCommitRequestTopic] = []
    strangers: list[OffsetCommitResponseTopic] = []
    image = call.broker.image
    for topic in request.topics:
        by_id = call.version >= TOPIC_ID_VERSION_MIN
        found = image.topic_by_id(topic.topic_id) if by_id else image.topic(topic.name)
        count = 0 if found is None else len(found.partitions)
        if found is not None:
            # Offsets are kept by name, whichever way the topic was named.
            topic.name = found.name
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if found is None and by_id:
            missing = ErrorCode.UNKNOWN_TOPIC_ID
        absent = [part for part in topic.partitions if not 0 <= part.partition_index < count]
        if absent:
            strangers.append(
                OffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=part.partition_index, error_code=missing
                        )
                        for part in absent
                    ],
                )
            )
            topic.partitions = [part for part in topic.partitions if 0 <= part.partition_index < count]
        if topic.partitions:
            known.append(topic)
    return known, strangers


def _with(answer: Any, strangers: list[OffsetCommitResponseTopic]) -> OffsetCommitResponse:
    response: OffsetCommitResponse = answer
    for stranger in strangers:
        for topic in response.topics:
            if (topic.name, topic.topic_id) == (stranger.name, stranger.topic_id):
                topic.partitions.extend(stranger.partitions)
                break
        else:
            response.topics.append(stranger)
    return response
