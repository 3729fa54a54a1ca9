"""Sends the markers of ended transactions to the partitions' leaders on other brokers.

Each broker gets one request at a time. Markers that come while it is under way go into the next one, so many
short transactions cost few requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.ids import TopicPartition
from barnabas.transactions.steps import MarkersToWrite
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = logging.getLogger(__name__)

WRITE_TXN_MARKERS_KEY = 27
# An answer waits until the replicas of all partitions have their marker.
ANSWER_SECONDS = 30.0
MARKERS_PER_REQUEST = 1000

Written: TypeAlias = Callable[[TopicPartition, ErrorCode], None]


class _Waiting(NamedTuple):
    markers: MarkersToWrite
    partitions: list[TopicPartition]
    written: Written


class MarkerSender:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: dict[int, list[_Waiting]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def send(
        self, leader_id: int, markers: MarkersToWrite, partitions: list[TopicPartition], written: Written
    ) -> None:
        """Write the markers to partitions that `leader_id` leads; `written` gets the result of each."""
        self._waiting.setdefault(leader_id, []).append(_Waiting(markers, partitions, written))
        if leader_id not in self._tasks:
            self._tasks[leader_id] = asyncio.get_running_loop().create_task(self._run(leader_id))

    async def close(self) -> None:
        """Stop sending; the results of what is under way are not reported."""
        self._waiting.clear()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, leader_id: int) -> None:
        try:
            await self._send_all(leader_id)
        finally:
            # In the same turn in which nothing was waiting any more: the next marker needs a new task.
            del self._tasks[leader_id]

    async def _send_all(self, leader_id: int) -> None:
        while waiting := self._waiting.pop(leader_id, []):
            portion, rest = waiting[:MARKERS_PER_REQUEST], waiting[MARKERS_PER_REQUEST:]
            if rest:
                self._waiting[leader_id] = rest
            results = await self._results(leader_id, portion)
            for entry, codes in zip(portion, results, strict=True):
                for partition in entry.partitions:
                    # A partition that is missing in the answer is tried again.
                    entry.written(partition, codes.get(partition, ErrorCode.REQUEST_TIMED_OUT))

    async def _results(
        self, leader_id: int, portion: list[_Waiting]
    ) -> list[dict[TopicPartition, ErrorCode]]:
        request = WriteTxnMarkersRequest(markers=[_marker(entry) for entry in portion])
        try:
            response = await self._broker.peers.send(
                leader_id,
                WRITE_TXN_MARKERS_KEY,
                request,
                purpose="transactions",
                within_seconds=ANSWER_SECONDS,
            )
        except KafkaError as error:
            count = len(portion)
            logger.info(
                "cannot write markers of %d transactions on broker %d yet: %s", count, leader_id, error
            )
            return [{} for _ in portion]
        answered = [result.producer_id for result in response.markers]
        if answered != [entry.markers.producer_id for entry in portion]:
            logger.error("broker %d answered for other markers than it was sent", leader_id)
            return [{} for _ in portion]
        return [_codes(result) for result in response.markers]


def _marker(entry: _Waiting) -> WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for topic, index in entry.partitions:
        topics.setdefault(topic, []).append(index)
    markers = entry.markers
    return WritableTxnMarker(
        producer_id=markers.producer_id,
        producer_epoch=markers.producer_epoch,
        transaction_result=markers.is_commit,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()
        ],
        coordinator_epoch=markers.coordinator_epoch,
        transaction_version=markers.transaction_version,
    )


def _codes(result: WritableTxnMarkerResult) -> dict[TopicPartition, ErrorCode]:
    return {
        TopicPartition(topic.name, partition.partition_index): error_of(partition.error_code)
        for topic in result.topics
        for partition in topic.partitions
    }
