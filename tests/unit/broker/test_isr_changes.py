"""How the proposals of leaders get to the controller, and its results back."""

import asyncio
from typing import Any, cast

import pytest

from barnabas.broker import isr_changes
from barnabas.broker.isr_changes import AlterPartitions
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition
from barnabas.replication.partition import Partition
from barnabas.replication.ports import IsrProposal
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)

TOPIC_ID = b"t" * 16


class Led:
    """Takes the place of a partition."""

    def __init__(self, index: int) -> None:
        self.topic_id = TOPIC_ID
        self.topic_partition = TopicPartition("topic", index)
        self.results: list[Any] = []

    def isr_accepted(self, proposal: IsrProposal, isr: tuple[int, ...], partition_epoch: int) -> None:
        self.results.append((isr, partition_epoch))

    def isr_refused(self, proposal: IsrProposal, code: ErrorCode) -> None:
        self.results.append(code)


class Controller:
    """Answers when the test lets it."""

    def __init__(self) -> None:
        self.requests: list[AlterPartitionRequest] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.failures: list[Exception | ErrorCode] = []
        self.codes: dict[int, ErrorCode] = {}
        self.forgets: set[int] = set()

    async def send(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.requests.append(request)
        await self.may_answer.wait()
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, Exception):
            raise failure
        if failure is not None:
            return AlterPartitionResponse(error_code=failure)
        return AlterPartitionResponse(
            topics=[
                ResponseTopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        ResponsePartitionData(
                            partition_index=part.partition_index,
                            error_code=self.codes.get(part.partition_index, ErrorCode.NONE),
                            leader_epoch=part.leader_epoch,
                            isr=[member.broker_id for member in part.new_isr_with_epochs],
                            partition_epoch=part.partition_epoch + 1,
                        )
                        for part in topic.partitions
                        if part.partition_index not in self.forgets
                    ],
                )
                for topic in request.topics
            ]
        )


def proposed(changes: AlterPartitions, led: Led) -> None:
    changes.propose(cast(Partition, led), IsrProposal(3, 7, ((1, 11), (2, 12))))


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_proposals_made_meanwhile_go_together_in_the_next_request() -> None:
    async def story() -> None:
        controller = Controller()
        changes = AlterPartitions(1, lambda: 11, controller.send)
        controller.may_answer.clear()
        led = [Led(index) for index in range(4)]
        proposed(changes, led[0])
        await settled()
        for each in led[1:]:
            proposed(changes, each)
        await settled()
        assert len(controller.requests) == 1
        controller.may_answer.set()
        await settled()
        assert [len(request.topics[0].partitions) for request in controller.requests] == [1, 3]
        assert all(each.results == [((1, 2), 8)] for each in led)
        request = controller.requests[0]
        assert (request.broker_id, request.broker_epoch) == (1, 11)
        part = request.topics[0].partitions[0]
        assert (part.leader_epoch, part.partition_epoch) == (3, 7)
        assert [(each.broker_id, each.broker_epoch) for each in part.new_isr_with_epochs] == [
            (1, 11),
            (2, 12),
        ]

    asyncio.run(story())


def test_each_partition_gets_its_own_error() -> None:
    async def story() -> None:
        controller = Controller()
        changes = AlterPartitions(1, lambda: 11, controller.send)
        controller.codes = {1: ErrorCode.INELIGIBLE_REPLICA}
        controller.forgets = {2}
        led = [Led(index) for index in range(3)]
        for each in led:
            proposed(changes, each)
        await settled()
        assert [each.results for each in led] == [
            [((1, 2), 8)],
            [ErrorCode.INELIGIBLE_REPLICA],
            [ErrorCode.UNKNOWN_SERVER_ERROR],
        ]

    asyncio.run(story())


@pytest.mark.parametrize("failure", [KafkaError(ErrorCode.REQUEST_TIMED_OUT), ErrorCode.STALE_BROKER_EPOCH])
def test_all_get_the_error_of_a_failed_request_and_the_next_one_waits_a_little(
    failure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    code = failure if isinstance(failure, ErrorCode) else failure.code

    async def story() -> None:
        controller = Controller()
        controller.failures = [failure]
        changes = AlterPartitions(1, lambda: 11, controller.send)
        led = Led(0)
        led.isr_refused = lambda _, code: (led.results.append(code), proposed(changes, led))  # type: ignore
        proposed(changes, led)
        await settled()
        assert led.results == [code, ((1, 2), 8)]

    sleep = asyncio.sleep

    async def recorded(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(isr_changes.asyncio, "sleep", recorded)
    asyncio.run(story())
    assert isr_changes.RETRY_SECONDS in pauses


def test_closing_forgets_what_was_not_sent() -> None:
    async def story() -> None:
        controller = Controller()
        controller.may_answer.clear()
        changes = AlterPartitions(1, lambda: 11, controller.send)
        led = Led(0)
        proposed(changes, led)
        await settled()
        await changes.close()
        controller.may_answer.set()
        await settled()
        assert led.results == []

    asyncio.run(story())
