"""Markers for partitions that other brokers lead: one request at a time for each broker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.broker import marker_sender
from barnabas.broker.marker_sender import MarkerSender
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition
from barnabas.transactions.steps import MarkersToWrite
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

ONE, TWO = TopicPartition("one", 0), TopicPartition("two", 3)


class Broker:
    """It has peers that answer when a test lets them; the code of a partition is NONE unless one is given."""

    def __init__(self) -> None:
        self.peers = self
        self.requests: list[tuple[int, Any]] = []
        self.may_answer = asyncio.Event()
        self.codes: dict[TopicPartition, ErrorCode] = {}
        self.error: KafkaError | None = None

    async def send(self, broker_id: int, api_key: int, message: Any, **_: Any) -> Any:
        assert api_key == 27
        self.requests.append((broker_id, message))
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return WriteTxnMarkersResponse(markers=[self._result(marker) for marker in message.markers])

    def _result(self, marker: Any) -> WritableTxnMarkerResult:
        topics = [
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index,
                        error_code=self.codes.get(TopicPartition(topic.name, index), ErrorCode.NONE),
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ]
        return WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)


class Story:
    def __init__(self) -> None:
        self.broker = Broker()
        self.sender = MarkerSender(self.broker)  # type: ignore[arg-type]
        self.results: dict[tuple[int, TopicPartition], ErrorCode] = {}

    def send(self, broker_id: int, producer_id: int, *partitions: TopicPartition) -> None:
        markers = MarkersToWrite("id", producer_id, 4, 7, True, frozenset(partitions), 2)

        def written(partition: TopicPartition, code: ErrorCode) -> None:
            self.results[producer_id, partition] = code

        self.sender.send(broker_id, markers, list(partitions), written)

    @property
    def sent(self) -> list[tuple[int, list[int]]]:
        """The broker and the producers of each request."""
        return [
            (broker_id, [marker.producer_id for marker in request.markers])
            for broker_id, request in self.broker.requests
        ]


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_the_request_has_everything_that_the_leader_needs() -> None:
    async def story() -> None:
        it = Story()
        it.broker.codes[TWO] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        it.broker.may_answer.set()
        it.send(2, 11, ONE, TWO)
        await turns()
        ((broker_id, request),) = it.broker.requests
        (marker,) = request.markers
        assert broker_id == 2
        assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (11, 4, 7)
        assert (marker.transaction_result, marker.transaction_version) == (True, 2)
        assert [(topic.name, topic.partition_indexes) for topic in marker.topics] == [
            ("one", [0]),
            ("two", [3]),
        ]
        assert it.results == {(11, ONE): ErrorCode.NONE, (11, TWO): ErrorCode.NOT_LEADER_OR_FOLLOWER}

    asyncio.run(story())


def test_markers_that_come_during_a_request_go_into_the_next_one_and_brokers_do_not_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(marker_sender, "MARKERS_PER_REQUEST", 2)

    async def story() -> None:
        it = Story()
        it.send(2, 1, ONE)
        await turns()
        for producer_id in (2, 3, 4):
            it.send(2, producer_id, ONE)
        it.send(3, 5, TWO)
        await turns()
        assert it.sent == [(2, [1]), (3, [5])]
        it.broker.may_answer.set()
        await turns()
        assert it.sent == [(2, [1]), (3, [5]), (2, [2, 3]), (2, [4])]
        assert set(it.results.values()) == {ErrorCode.NONE}
        assert len(it.results) == 5

    asyncio.run(story())


def test_a_marker_that_comes_in_the_turn_after_the_last_answer_is_sent() -> None:
    async def story() -> None:
        it = Story()
        it.broker.may_answer.set()

        def written(partition: TopicPartition, code: ErrorCode) -> None:
            # It runs when the sender has seen that nothing else is waiting, and before anything else.
            asyncio.get_running_loop().call_soon(it.send, 2, 2, TWO)

        markers = MarkersToWrite("id", 1, 4, 7, True, frozenset({ONE}), 2)
        it.sender.send(2, markers, [ONE], written)
        await turns()
        assert it.sent == [(2, [1]), (2, [2])]
        assert it.results == {(2, TWO): ErrorCode.NONE}

    asyncio.run(story())


def test_a_broker_that_cannot_be_reached_leaves_its_partitions_for_a_retry() -> None:
    async def story() -> None:
        it = Story()
        it.broker.error = KafkaError(ErrorCode.NETWORK_EXCEPTION)
        it.broker.may_answer.set()
        it.send(2, 1, ONE, TWO)
        await turns()
        assert it.results == {
            (1, ONE): ErrorCode.REQUEST_TIMED_OUT,
            (1, TWO): ErrorCode.REQUEST_TIMED_OUT,
        }

    asyncio.run(story())


def test_after_close_nothing_is_reported() -> None:
    async def story() -> None:
        it = Story()
        it.send(2, 1, ONE)
        await turns()
        it.send(2, 2, ONE)
        await it.sender.close()
        it.broker.may_answer.set()
        await turns()
        assert it.sent == [(2, [1])]
        assert it.results == {}

    asyncio.run(story())
