"""WriteTxnMarkers, key 27, versions 1-2: end transactions on partitions this broker leads.

Behaviour: sent by coordinators on other brokers, and by administrators who abort a hanging transaction;
answered when the markers are committed.
Versions:  v2 the transaction version, which decides how the epoch is checked."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

from barnabas.broker.call import Call
from barnabas.broker.later import Later
from barnabas.broker.portions import drained, drained_items
from barnabas.broker.turns import Work, run_in_turns
from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.transactions.steps import MarkersToWrite
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

# By topic and partition: the answer, or a Later until the answer is there.
Replies: TypeAlias = dict[str, dict[int, Any]]


def write_txn_markers(call: Call, request: WriteTxnMarkersRequest) -> Work[Any]:
    # All markers are appended first, then their commits are awaited: partitions do not wait for each other.
    pending: list[tuple[int, Replies]] = []
    waiting: list[tuple[dict[int, Any], int]] = []
    yield from _append(call, request.markers, pending, waiting)
    return _wait(pending, waiting) if waiting else (yield from _response(pending))


async def _wait(
    pending: list[tuple[int, Replies]], waiting: list[tuple[dict[int, Any], int]]
) -> WriteTxnMarkersResponse:
    for by_index, index in waiting:
        if isinstance(by_index[index], Later):
            by_index[index] = await by_index[index]
    return await run_in_turns(_response(pending))


def _append(
    call: Call,
    requested: list[WritableTxnMarker],
    pending: list[tuple[int, Replies]],
    waiting: list[tuple[dict[int, Any], int]],
) -> Work[None]:
    """Add the replies to `pending`, and the places of those that are not there yet to `waiting`.

    A partition that is repeated gets one marker, and one answer."""
    for marker in drained(requested):
        markers = MarkersToWrite(
            "",
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.transaction_result,
            frozenset(),
            marker.transaction_version,
        )
        replies: Replies = {}
        for topic in marker.topics:
            by_index = replies.setdefault(topic.name, {})
            for index in topic.partition_indexes:
                if index not in by_index:
                    reply = by_index[index] = _write(call, TopicPartition(topic.name, index), markers)
                    reply.then(partial(by_index.__setitem__, index))
                    if isinstance(by_index[index], Later):
                        waiting.append((by_index, index))
                yield
            yield
        pending.append((marker.producer_id, replies))
        yield


def _write(call: Call, place: TopicPartition, markers: MarkersToWrite) -> Later:
    if call.broker.image.partition(*place) is None:
        unknown = Later()
        unknown.resolve(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return unknown
    return call.broker.transactions.write_marker(place, markers)


def _response(pending: list[tuple[int, Replies]]) -> Work[WriteTxnMarkersResponse]:
    """One result for each producer, as in Kafka: where markers repeat a partition, that of the last one."""
    by_producer: dict[int, Replies] = {}
    for producer_id, replies in drained(pending):
        topics = by_producer.setdefault(producer_id, replies)
        if topics is not replies:
            for name, by_index in replies.items():
                topics.setdefault(name, {}).update(by_index)
                yield
        yield
    response = WriteTxnMarkersResponse()
    for producer_id, replies in drained_items(by_producer):
        result = WritableTxnMarkerResult(producer_id=producer_id)
        for name, by_index in drained_items(replies):
            topic = WritableTxnMarkerTopicResult(name=name)
            for index, code in by_index.items():
                topic.partitions.append(
                    WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                )
                yield
            result.topics.append(topic)
        response.markers.append(result)
        yield
    return response
