"""WriteTxnMarkers, key 27, versions 1-2: end transactions on partitions this broker leads.

Behaviour: sent by coordinators on other brokers, and by administrators who abort a hanging transaction;
answered when the markers are committed.
Versions:  v2 the transaction version, which decides how the epoch is checked."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.call import Call
from barnabas.broker.later import Later
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


async def write_txn_markers(call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    # All markers are appended first, then their commits are awaited: partitions do not wait for each other.
    pending = [(marker, _append(call, marker)) for marker in request.markers]
    return WriteTxnMarkersResponse(
        markers=[_result(marker, {place: await code for place, code in codes}) for marker, codes in pending]
    )


def _append(call: Call, marker: WritableTxnMarker) -> list[tuple[TopicPartition, Later]]:
    markers = MarkersToWrite(
        "",
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.transaction_result,
        frozenset(),
        marker.transaction_version,
    )
    # A partition that is named twice gets one marker.
    places = {
        TopicPartition(topic.name, index): None
        for topic in marker.topics
        for index in topic.partition_indexes
    }
    return [(place, _write(call, place, markers)) for place in places]


def _write(call: Call, place: TopicPartition, markers: MarkersToWrite) -> Later:
    if call.broker.image.partition(*place) is None:
        unknown = Later()
        unknown.resolve(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return unknown
    return call.broker.transactions.write_marker(place, markers)


def _result(marker: WritableTxnMarker, codes: Mapping[TopicPartition, ErrorCode]) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=codes[TopicPartition(topic.name, index)]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
