"""Answers to Produces that wait until their batches are committed, sent in the order of the requests."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.conftest import Stage
from tests.unit.broker.handlers.test_produce_plain import a_batch, frame_of, request_of

from barnabas.broker.deferred_replies import DeferredReplies
from barnabas.broker.plain_produces import plain_produces
from barnabas.broker.session import Session
from barnabas.errors import ErrorCode
from barnabas.metadata.parts import PartitionImage
from barnabas.replication.partition import Partition
from barnabas.wire.codec import decode_response

ME, OTHER = 1, 2


class Connection:
    """Takes the place of a client's connection."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.is_deferring = False
        self.abandon: Callable[[], object] | None = None

    def defer(self, when_abandoned: Callable[[], object]) -> None:
        self.is_deferring, self.abandon = True, when_abandoned

    def reply_deferred(self, replies: bytes, *, is_last: bool) -> None:
        assert self.is_deferring
        self.sent += replies
        self.is_deferring = not is_last

    def codes(self, version: int) -> list[tuple[int, int]]:
        """The error code and base offset of each answer that was sent."""
        answers = []
        data = bytes(self.sent)
        while data:
            size = int.from_bytes(data[:4])
            part = decode_response(0, version, data[4 : 4 + size])[1].responses[0].partition_responses[0]
            answers.append((part.error_code, part.base_offset))
            data = data[4 + size :]
        return answers


class Client:
    """One connection that produces to partitions with a follower in sync."""

    def __init__(self, stage: Stage, version: int = 9) -> None:
        self.stage, self.version = stage, version
        self.connection = Connection()
        self.times: list[int] = []
        self.replies = DeferredReplies(self.connection, lambda count, _: self.times.append(count))  # type: ignore
        self.way = plain_produces(stage, Session(stage.config.listeners[0], ""))  # type: ignore[arg-type]

    def produce(self, topic: str = "topic", acks: int = -1, timeout_ms: int = 60_000) -> bytes:
        request = request_of(self.stage, topic, a_batch(self.stage, 1), acks)
        request.timeout_ms = timeout_ms
        sent = self.way.answer(
            frame_of(request, self.version), self.stage.clock.now_ms(), bool(len(self.replies))
        )
        assert self.way.answered == 1
        if self.way.deferred:
            self.replies.add(self.way.deferred, 0)
        return bytes(sent)

    @property
    def codes(self) -> list[tuple[int, int]]:
        return self.connection.codes(self.version)


def led(stage: Stage, name: str = "topic") -> Partition:
    stage.create(name)
    partition = stage.replicas.leader(name, 0)
    partition.follow(PartitionImage((ME, OTHER), (ME, OTHER), ME, partition.leader_epoch, 1))
    return partition


def story(stage: Stage, tell: Callable[[Client], Any], version: int = 9) -> None:
    async def run() -> None:
        client = Client(stage, version)
        result = tell(client)
        if asyncio.iscoroutine(result):
            await result

    stage.run(run())


@pytest.mark.parametrize("version", [3, 9, 13])
def test_answers_are_sent_when_the_follower_has_the_batches(stage: Stage, version: int) -> None:
    partition = led(stage)

    def tell(client: Client) -> None:
        for _ in range(3):
            assert client.produce() == b""
        partition.record_fetch(OTHER, -1, 2, 0)
        assert client.codes == [(0, 0), (0, 1)]
        assert client.connection.is_deferring
        partition.record_fetch(OTHER, -1, 3, 0)
        assert client.codes == [(0, 0), (0, 1), (0, 2)]
        assert not client.connection.is_deferring
        assert client.times == [1, 1, 1]
        assert len(partition.committed) == 0

    story(stage, tell, version)


def test_an_answer_that_need_not_wait_keeps_its_place(stage: Stage) -> None:
    partition = led(stage)

    def tell(client: Client) -> None:
        client.produce()
        assert client.produce(acks=1) == b""
        assert client.codes == []
        partition.record_fetch(OTHER, -1, 1, 0)
        assert client.codes == [(0, 0), (0, 1)]
        assert client.produce(acks=1) != b"", "nothing waits any more"

    story(stage, tell)


def test_one_partition_holds_back_the_answers_of_another_on_the_same_connection(stage: Stage) -> None:
    first, second = led(stage), led(stage, "second")

    def tell(client: Client) -> None:
        client.produce()
        client.produce("second")
        second.record_fetch(OTHER, -1, 1, 0)
        assert client.codes == []
        first.record_fetch(OTHER, -1, 1, 0)
        assert client.codes == [(0, 0), (0, 0)]

    story(stage, tell)


@pytest.mark.parametrize("version", [3, 9, 13])
def test_a_new_leader_epoch_ends_the_wait_with_an_error(stage: Stage, version: int) -> None:
    """Even if this broker leads again: the batch may have been replaced by another one meanwhile."""
    partition = led(stage)

    def tell(client: Client) -> None:
        client.produce()
        client.produce()
        image = PartitionImage((ME, OTHER), (ME, OTHER), ME, partition.leader_epoch + 1, 2)
        partition.follow(image)
        partition.record_fetch(OTHER, -1, 2, 0)
        assert client.codes == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)] * 2
        assert partition.requests.failed_produces == 2

    story(stage, tell, version)


def test_each_answer_has_the_timeout_of_its_request(stage: Stage) -> None:
    partition = led(stage)

    async def tell(client: Client) -> None:
        client.produce(timeout_ms=20)
        client.produce(timeout_ms=60_000)
        for _ in range(500):
            if client.codes:
                break
            await asyncio.sleep(0.01)
        assert client.codes == [(ErrorCode.REQUEST_TIMED_OUT, -1)]
        partition.record_fetch(OTHER, -1, 2, 0)
        assert client.codes[1:] == [(0, 1)]

    story(stage, tell)


def test_too_few_in_sync_after_the_append(stage: Stage) -> None:
    partition = led(stage)

    def tell(client: Client) -> None:
        client.produce()
        assert partition.leading is not None
        # The watermark moves with the fetch; before the answer is made the ISR is known to be too small.
        partition.update_config(dataclasses.replace(partition.log.config, min_insync_replicas=2))
        partition.leading.maximal_isr = (ME,)
        partition.raise_high_watermark(1)
        assert client.codes == [(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1)]

    story(stage, tell)


def test_a_client_that_goes_away_leaves_nothing_behind(stage: Stage) -> None:
    partition = led(stage)

    def tell(client: Client) -> None:
        client.produce()
        assert client.connection.abandon is not None
        client.connection.abandon()
        assert (len(partition.committed), len(client.replies)) == (0, 0)
        partition.record_fetch(OTHER, -1, 1, 0)
        assert client.codes == []

    story(stage, tell)
