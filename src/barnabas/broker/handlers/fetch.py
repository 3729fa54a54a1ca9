"""Fetch, key 1, versions 4-18: hand out ranges of the log, and wait for them when there is nothing yet.

Behaviour: the batch that holds the requested offset is returned whole, the first batch even when it is
over the limits; without data the request waits for min_bytes or max_wait_ms; read_committed ends at
the last stable offset and lists aborted transactions; records are empty, never null.
A replica (replica_id >= 0) reads up to the end of the log. The offset it fetches from tells the leader how
far it has come.
Versions:  v5 log start of a replica · v7 sessions · v9 leader epochs · v10 zstd · v11 racks: a client may be
sent to a nearer replica, and followers serve clients · v12 diverging epoch · v13 topic ids · v15 broker epoch
of a replica, without which it is refused · v16 endpoints of new leaders.

Reading, waiting and answering are in broker/fetch_reading.py. A request over very many partitions is answered
in turns (broker/turns.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from barnabas.broker.call import Call, Encoded
from barnabas.broker.fetch_answers import TOPIC_ID_VERSION_MIN
from barnabas.broker.fetch_reading import Reading
from barnabas.broker.fetch_sessions import (
    EPOCH_FINAL,
    EPOCH_INITIAL,
    NO_SESSION,
    FetchPartition,
    FetchSession,
    PartitionKey,
)
from barnabas.broker.later import Later
from barnabas.broker.portions import drained
from barnabas.broker.turns import SLICE, Work
from barnabas.errors import KafkaError
from barnabas.ids import ZERO_UUID, Uuid
from barnabas.replication.gate import NO_REPLICA, Asker
from barnabas.replication.ports import NO_BROKER_EPOCH
from barnabas.wire.messages.fetch import FetchPartition as FetchedPartition
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse, FetchTopic

REPLICA_STATE_VERSION_MIN = 15

Answer: TypeAlias = FetchResponse | Encoded | Later | Work[Any]
Requested: TypeAlias = dict[PartitionKey, FetchPartition]


def fetch(call: Call, request: FetchRequest) -> Answer:
    if len(request.topics) > SLICE or any(len(topic.partitions) > SLICE for topic in request.topics):
        return _fetch_in_turns(call, request)
    requested: Requested = {}
    for topic in request.topics:
        _add_requested(requested, topic, topic.partitions)
    try:
        reading = _open(call, request, requested)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    return reading.answer() if reading.is_short else reading.answer_in_turns()


def _fetch_in_turns(call: Call, request: FetchRequest) -> Work[Any]:
    requested: Requested = {}
    for topic in drained(request.topics):
        for part in drained(topic.partitions):
            _add_requested(requested, topic, (part,))
            yield
    try:
        reading = _open(call, request, requested)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    del requested
    return (yield from reading.answer_in_turns())


def _add_requested(requested: Requested, topic: FetchTopic, parts: Iterable[FetchedPartition]) -> None:
    """A partition that is named more than once counts once, as it was named last: Kafka's rule."""
    name: str | Uuid = topic.topic if topic.topic_id == ZERO_UUID else topic.topic_id
    for part in parts:
        requested[name, part.partition] = FetchPartition(
            topic.topic,
            topic.topic_id,
            part.partition,
            part.fetch_offset,
            part.partition_max_bytes,
            part.current_leader_epoch,
            part.last_fetched_epoch,
            replica_log_start=part.log_start_offset,
        )


def _open(call: Call, request: FetchRequest, requested: Requested) -> Reading:
    """Find the session the request belongs to, if any, and with it the partitions to read."""
    asker = _asker(call, request)
    sessions = call.broker.fetch_sessions
    uses_topic_ids = call.version >= TOPIC_ID_VERSION_MIN
    session: FetchSession | None = None
    if request.session_epoch in (EPOCH_INITIAL, EPOCH_FINAL):
        if request.session_id != NO_SESSION:
            sessions.end_of(request.session_id, asker)
        if request.session_epoch == EPOCH_INITIAL:
            session = sessions.start(asker, requested, uses_topic_ids=uses_topic_ids)
        return Reading(call, asker, request, session, list(requested.values()))
    session = sessions.resume(request.session_id, request.session_epoch, asker, uses_topic_ids=uses_topic_ids)
    forgotten: list[PartitionKey] = [
        (gone.topic if gone.topic_id == ZERO_UUID else gone.topic_id, index)
        for gone in request.forgotten_topics_data
        for index in gone.partitions
    ]
    sessions.update(session, requested, forgotten)
    if not session.partitions:
        sessions.end(session.id)
        return Reading(call, asker, request, None, [])
    if session.news is not None and not session.news.begin():
        named = {key: session.partitions[key] for key in requested if key in session.partitions}
        return Reading(call, asker, request, session, session.news.take(named))
    return Reading(call, asker, request, session, list(session.partitions.values()))


def _asker(call: Call, request: FetchRequest) -> Asker:
    """The client, or the replica that the request says it comes from."""
    has_state = call.version >= REPLICA_STATE_VERSION_MIN
    replica_id = request.replica_state.replica_id if has_state else request.replica_id
    if replica_id <= NO_REPLICA:
        return call.asker
    epoch = request.replica_state.replica_epoch if has_state else NO_BROKER_EPOCH
    asker = call.asker._replace(replica_id=replica_id, broker_epoch=epoch)
    call.broker.gate.check_replica(asker)
    return asker
