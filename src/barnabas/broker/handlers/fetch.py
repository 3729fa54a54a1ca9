"""Fetch, key 1, versions 4-18: hand out ranges of the log, and wait for them when there is nothing yet.

Behaviour: the batch that holds the requested offset is returned whole, the first batch even when it is
over the limits; without data the request waits for min_bytes or max_wait_ms; read_committed ends at
the last stable offset and lists aborted transactions; records are empty, never null.
Versions:  v7 sessions · v9 leader epochs · v10 zstd · v12 diverging epoch · v13 topic ids ·
v16 endpoints of new leaders.
Not done:  fetches of replicas (replica_id >= 0), which come with replication; racks.

Reading, waiting and answering are in broker/fetch_reading.py. A request over very many partitions is answered
in turns (broker/turns.py)."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeAlias

from barnabas.broker.call import Call, Encoded
from barnabas.broker.fetch_reading import TOPIC_ID_VERSION_MIN, Reading
from barnabas.broker.fetch_sessions import (
    EPOCH_FINAL,
    EPOCH_INITIAL,
    NO_SESSION,
    FetchPartition,
    FetchSession,
    PartitionKey,
)
from barnabas.broker.later import Later
from barnabas.broker.turns import SLICE, Work, in_slices, in_turns
from barnabas.errors import KafkaError
from barnabas.ids import ZERO_UUID, Uuid
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse, FetchTopic

REPLICA_STATE_VERSION_MIN = 15

Answer: TypeAlias = FetchResponse | Encoded | Later | Coroutine[Any, Any, FetchResponse | Encoded]
Requested: TypeAlias = dict[PartitionKey, FetchPartition]


def fetch(call: Call, request: FetchRequest) -> Answer:
    if len(request.topics) > SLICE or any(len(topic.partitions) > SLICE for topic in request.topics):
        return in_turns(_fetch_in_turns(call, request))
    requested: Requested = {}
    for topic in request.topics:
        _add_requested(requested, topic, 0, SLICE)
    try:
        reading = _open(call, request, requested)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    return reading.answer() if reading.is_short else in_turns(reading.answer_in_turns())


def _fetch_in_turns(call: Call, request: FetchRequest) -> Work[Any]:
    requested: Requested = {}
    for topic in request.topics:
        yield from in_slices(partial(_add_requested, requested, topic), len(topic.partitions))
    try:
        reading = _open(call, request, requested)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    return (yield from reading.answer_in_turns())


def _add_requested(requested: Requested, topic: FetchTopic, start: int, end: int) -> None:
    """A partition that is named more than once counts once, as it was named last: Kafka's rule."""
    name: str | Uuid = topic.topic if topic.topic_id == ZERO_UUID else topic.topic_id
    for part in topic.partitions[start:end]:
        requested[name, part.partition] = FetchPartition(
            topic.topic,
            topic.topic_id,
            part.partition,
            part.fetch_offset,
            part.partition_max_bytes,
            part.current_leader_epoch,
            part.last_fetched_epoch,
        )


def _open(call: Call, request: FetchRequest, requested: Requested) -> Reading:
    """Find the session the request belongs to, if any, and with it the partitions to read."""
    call.broker.gate.check_replica(
        request.replica_state.replica_id if call.version >= REPLICA_STATE_VERSION_MIN else request.replica_id
    )
    sessions = call.broker.fetch_sessions
    uses_topic_ids = call.version >= TOPIC_ID_VERSION_MIN
    session: FetchSession | None = None
    if request.session_epoch in (EPOCH_INITIAL, EPOCH_FINAL):
        if request.session_id != NO_SESSION:
            sessions.end(request.session_id)
        if request.session_epoch == EPOCH_INITIAL:
            session = sessions.start(call.asker, requested, uses_topic_ids=uses_topic_ids)
        return Reading(call, request, session, list(requested.values()))
    session = sessions.resume(
        request.session_id, request.session_epoch, call.asker, uses_topic_ids=uses_topic_ids
    )
    forgotten: list[PartitionKey] = [
        (gone.topic if gone.topic_id == ZERO_UUID else gone.topic_id, index)
        for gone in request.forgotten_topics_data
        for index in gone.partitions
    ]
    sessions.update(session, requested, forgotten)
    if not session.partitions:
        sessions.end(session.id)
        return Reading(call, request, None, [])
    return Reading(call, request, session, list(session.partitions.values()))
