"""WriteTxnMarkers, key 27, versions 1-2: end transactions on partitions this broker leads.

Behaviour: sent by coordinators on other brokers, and by administrators who abort a hanging transaction;
answered when the markers are committed.
Versions:  v2 the transaction version, which decides how the epoch is checked."""

from __future__ import annotations

from typing import Any, TypeAlias

from barnabas.broker.call import Call
from barnabas.broker.later import Later
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

# By topic and partition: a Later, and its answer once that is there.
Replies: TypeAlias = dict[str, dict[int, Any]]


async def write_txn_markers(call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    # All markers are appended first, then their commits are awaited: partitions do not wait for each other.
    pending = await run_in_turns(_append(call, request.markers))
    for _, replies in pending:
        for by_index in replies.values():
            for index, reply in by_index.items():
                by_index[index] = await reply
    return await run_in_turns(_response(pending))


def _append(call: Call, requested: list[WritableTxnMarker]) -> Work[list[tuple[WritableTxnMarker, Replies]]]:
    """A partition that is repeated gets one marker, and one answer."""
    pending = []
    for marker in requested:
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
                    by_index[index] = _write(call, TopicPartition(topic.name, index), markers)
                yield
            yield
        pending.append((marker, replies))
        yield
    return pending


def _write(call: Call, place: TopicPartition, markers: MarkersToWrite) -> Later:
    if call.broker.image.partition(*place) is None:
        unknown = Later()
        unknown.resolve(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return unknown
    return call.broker.transactions.write_marker(place, markers)


def _response(pending: list[tuple[WritableTxnMarker, Replies]]) -> Work[WriteTxnMarkersResponse]:
    response = WriteTxnMarkersResponse()
    for marker, replies in pending:
        result = WritableTxnMarkerResult(producer_id=marker.producer_id)
        for name, by_index in replies.items():
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
