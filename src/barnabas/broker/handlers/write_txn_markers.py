"""WriteTxnMarkers, key 27, versions 1-2: end transactions on partitions this broker leads.

Behaviour: coordinators of other brokers ask it, and administrators who abort a transaction that hangs.
Versions:  v2 the transaction's version, by which the epoch is judged."""

from __future__ import annotations

from barnabas.broker.call import Call
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


def write_txn_markers(call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(markers=[_written(call, marker) for marker in request.markers])


def _written(call: Call, marker: WritableTxnMarker) -> WritableTxnMarkerResult:
    markers = MarkersToWrite(
        "",
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.transaction_result,
        frozenset(),
        marker.transaction_version,
    )
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index,
                        error_code=_write(call, TopicPartition(topic.name, index), markers),
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )


def _write(call: Call, place: TopicPartition, markers: MarkersToWrite) -> ErrorCode:
    if call.broker.image.partition(*place) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return call.broker.transactions.write_marker(place, markers)
