"""The sender with a scripted broker: errors, broken connections, timeouts, requests in flight."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

import pytest

from barnabas.client.errors import DisconnectedError, ErrorCode, KafkaError, KafkaTimeoutError
from barnabas.client.metadata import Leader
from barnabas.client.producer.accumulator import Accumulator, Limits, Record, TopicQueues
from barnabas.client.producer.batch import Packing
from barnabas.client.producer.ports import SenderSettings
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.sequences import SequenceBook
from barnabas.client.types import Node, TopicPartition
from barnabas.kernels.record_append import RecordFuture
from barnabas.records.batch import read_header
from barnabas.wire.messages import init_producer_id, produce

Answer = tuple[ErrorCode, int]
SETTINGS = SenderSettings(
    acks=-1,
    retries=2**31 - 1,
    in_flight_max=5,
    request_bytes_max=10_000,
    request_seconds=30.0,
    delivery_seconds=120.0,
    backoff_seconds=0.001,
    backoff_seconds_max=0.002,
    transactional_id=None,
    is_idempotent=True,
    packing=Packing(),
)


class ScriptedBroker:
    """Takes the place of the connection and the cluster. It records (epoch, sequence, count) of every batch
    and gives the `answers` in order; when there are no more, it answers with success."""

    def __init__(self) -> None:
        self.is_closed = self.is_reading = False
        self.batches: list[tuple[int, int, int]] = []
        self.answers: list[ErrorCode | None] = []
        self.hold = False
        self.closed = asyncio.Event()
        self.held: list[Callable[[], None]] = []
        self.unanswered: list[Callable[[Any], None]] = []
        self.refreshes = 0
        self.avoided: list[int] = []
        self.leader: int | None = 1
        # The leader that refusals name (KIP-951); None if they name none.
        self.new_leader: int | None = None
        self.learned: dict[TopicPartition, Leader] = {}
        self.offset = 0

    def close(self, reason: str = "") -> None:
        self.is_closed = True
        self.closed.set()

    def leader_of(self, partition: TopicPartition) -> int | None:
        return self.leader

    def learn_leaders(self, leaders: Mapping[TopicPartition, Leader], nodes: Iterable[Node]) -> None:
        self.learned |= leaders
        (node,) = nodes
        self.leader = node.id

    async def refresh(self) -> None:
        self.refreshes += 1
        self.leader = 1

    def avoid(self, node_id: int) -> None:
        self.avoided.append(node_id)

    async def connection(self, node_id: int) -> Any:
        self.is_closed = False
        return self

    async def any(self) -> Any:
        return self

    async def send(self, api_key: int, message: Any) -> Any:
        return init_producer_id.InitProducerIdResponse(producer_id=7, producer_epoch=0)

    def send_no_reply(self, api_key: int, message: Any, *, version_max: int) -> None:
        self._note(message)

    def seconds_left(self, sent_at: float, seconds: float) -> float:
        return sent_at + seconds - asyncio.get_running_loop().time()

    def lose_all(self) -> None:
        """What a closed connection does with the requests that have no answer."""
        lost, self.unanswered = self.unanswered, []
        for when_answered in lost:
            when_answered(DisconnectedError("it broke"))

    def cork(self) -> None:
        """Not needed: what is sent is noted at once."""

    uncork = cork

    def ask(
        self, api_key: int, message: Any, when_answered: Callable[[Any], None], *, version_max: int
    ) -> None:
        count = self._note(message)
        code = self.answers.pop(0) if self.answers else ErrorCode.NONE

        def answer() -> None:
            if code is None:
                when_answered(DisconnectedError("it broke"))
                return
            part = produce.PartitionProduceResponse(
                index=0, error_code=int(code), base_offset=self.offset, log_start_offset=0
            )
            endpoints = []
            if code is ErrorCode.NONE:
                self.offset += count
            elif self.new_leader is not None:
                part.current_leader = produce.LeaderIdAndEpoch(leader_id=self.new_leader, leader_epoch=5)
                endpoints = [produce.NodeEndpoint(node_id=self.new_leader, host="h", port=1)]
            topic = produce.TopicProduceResponse(name="t", partition_responses=[part])
            when_answered(produce.ProduceResponse(responses=[topic], node_endpoints=endpoints))

        if self.hold:
            self.held.append(answer)
            self.unanswered.append(when_answered)
        else:
            asyncio.get_running_loop().call_soon(answer)

    def _note(self, message: produce.ProduceRequest) -> int:
        (topic,) = message.topic_data
        (part,) = topic.partition_data
        assert part.records is not None
        header = read_header(bytes(part.records))
        self.batches.append((header.producer_epoch, header.base_sequence, header.count))
        return header.count


class Story:
    def __init__(self, **changes: Any) -> None:
        self.broker = ScriptedBroker()
        self.accumulator = Accumulator(Limits(200, 100_000, 10_000, 0.0), lambda: None)
        self.queue = TopicQueues("t", 1).queues[0]
        book = SequenceBook(is_transactional=False)
        self.sender = Sender(self.accumulator, self.broker, SETTINGS._replace(**changes), book, None)

    def send(self, size: int = 150) -> RecordFuture:
        """Send one record. With the default size it fills a batch."""
        return self.accumulator.append(self.queue, Record(1, None, b"x" * size, None), 1e6)

    async def sent(self, count: int) -> None:
        for _ in range(2000):
            if len(self.broker.batches) >= count:
                return
            await asyncio.sleep(0.001)
        raise AssertionError(f"fewer than {count} batches were sent")

    async def outcome(self, future: RecordFuture) -> Any:
        self.sender.turn()
        for _ in range(2000):
            if future.done():
                error = future.exception(0)
                return future.result(0).offset if error is None else error
            await asyncio.sleep(0.001)
        raise AssertionError("no outcome")


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def test_a_broker_that_does_not_answer_is_given_up_and_the_batch_is_sent_again() -> None:
    async def scenario() -> None:
        story = Story(request_seconds=0.05)
        story.broker.hold = True
        future = story.send()
        story.sender.turn()
        await story.sent(1)
        await asyncio.wait_for(story.broker.closed.wait(), 30)
        story.broker.hold = False
        story.broker.lose_all()
        assert await story.outcome(future) == 0
        assert story.broker.batches == [(0, 0, 1)] * 2

    run(scenario)


def test_batches_are_numbered_and_confirmed() -> None:
    async def scenario() -> None:
        story = Story()
        futures = [story.send() for _ in range(3)]
        assert [await story.outcome(future) for future in futures] == [0, 1, 2]
        assert story.broker.batches == [(0, 0, 1), (0, 1, 1), (0, 2, 1)]
        assert story.accumulator.used_bytes == 0

    run(scenario)


@pytest.mark.parametrize("answer", [None, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT])
def test_after_a_retriable_error_the_batch_is_sent_again_with_the_same_sequence(
    answer: ErrorCode | None,
) -> None:
    async def scenario() -> None:
        story = Story()
        story.broker.answers = [answer, answer]
        assert await story.outcome(story.send()) == 0
        assert story.broker.batches == [(0, 0, 1)] * 3
        assert story.broker.refreshes >= 1
        assert story.sender.metrics["record-retry-total"] == 2

    run(scenario)


@pytest.mark.parametrize(
    ("answer", "avoided"),
    [
        (ErrorCode.REQUEST_TIMED_OUT, [1]),
        (ErrorCode.NETWORK_EXCEPTION, [1]),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, []),
    ],
)
def test_a_leader_that_cannot_commit_in_time_is_not_asked_who_leads(
    answer: ErrorCode, avoided: list[int]
) -> None:
    async def scenario() -> None:
        story = Story()
        story.broker.answers = [answer]
        assert await story.outcome(story.send()) == 0
        assert story.broker.avoided == avoided

    run(scenario)


def test_batches_behind_a_failed_one_follow_it_in_order() -> None:
    async def scenario() -> None:
        story = Story()
        assert await story.outcome(story.send()) == 0
        story.broker.answers = [ErrorCode.NOT_ENOUGH_REPLICAS, *[ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 3]
        futures = [story.send() for _ in range(4)]
        assert [await story.outcome(future) for future in futures] == [1, 2, 3, 4]
        assert story.broker.batches[5:] == [(0, 1, 1), (0, 2, 1), (0, 3, 1), (0, 4, 1)]

    run(scenario)


def test_the_first_batch_of_a_partition_goes_alone() -> None:
    """A leader that has no state of the producer would accept the second batch in its place."""

    async def scenario() -> None:
        story = Story()
        story.broker.answers = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        futures = [story.send() for _ in range(4)]
        assert [await story.outcome(future) for future in futures] == [0, 1, 2, 3]
        assert story.broker.batches == [(0, 0, 1), (0, 0, 1), (0, 1, 1), (0, 2, 1), (0, 3, 1)]

    run(scenario)


def test_a_refused_batch_fails_and_the_next_goes_on_in_a_new_epoch() -> None:
    async def scenario() -> None:
        story = Story()
        story.broker.answers = [ErrorCode.INVALID_RECORD]
        error = await story.outcome(story.send())
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.INVALID_RECORD
        assert await story.outcome(story.send()) == 0
        assert story.broker.batches == [(0, 0, 1), (1, 0, 1)]

    run(scenario)


def test_a_duplicate_is_a_success_without_an_offset() -> None:
    async def scenario() -> None:
        story = Story()
        story.broker.answers = [ErrorCode.DUPLICATE_SEQUENCE_NUMBER]
        assert await story.outcome(story.send()) == -1

    run(scenario)


def test_a_batch_fails_after_the_last_retry() -> None:
    async def scenario() -> None:
        story = Story(retries=2)
        story.broker.answers = [ErrorCode.NOT_ENOUGH_REPLICAS] * 5
        error = await story.outcome(story.send())
        assert error.code is ErrorCode.NOT_ENOUGH_REPLICAS
        assert len(story.broker.batches) == 3

    run(scenario)


def test_a_record_that_is_not_confirmed_in_time_fails() -> None:
    async def scenario() -> None:
        story = Story(delivery_seconds=0.02)
        story.broker.hold = True
        error = await story.outcome(story.send())
        assert isinstance(error, KafkaTimeoutError)
        assert story.accumulator.used_bytes == 0
        for answer in story.broker.held:
            answer()

    run(scenario)


def test_at_most_five_requests_are_in_flight() -> None:
    async def scenario() -> None:
        story = Story()
        assert await story.outcome(story.send()) == 0
        story.broker.hold = True
        futures = [story.send() for _ in range(8)]
        story.sender.turn()
        await story.sent(6)
        await asyncio.sleep(0.01)
        assert len(story.broker.batches) == 6
        story.broker.hold = False
        for answer in story.broker.held:
            answer()
        assert [await story.outcome(future) for future in futures] == list(range(1, 9))

    run(scenario)


def test_a_partition_without_a_leader_waits_for_metadata() -> None:
    async def scenario() -> None:
        story = Story()
        story.broker.leader = None
        assert await story.outcome(story.send()) == 0
        assert story.broker.refreshes == 1

    run(scenario)


def test_a_batch_that_is_too_large_is_split() -> None:
    async def scenario() -> None:
        story = Story()
        story.broker.answers = [ErrorCode.MESSAGE_TOO_LARGE]
        futures = [story.send(10) for _ in range(4)]
        assert [await story.outcome(future) for future in futures] == [0, 1, 2, 3]
        assert story.broker.batches == [(0, 0, 4), (0, 0, 2), (0, 2, 2)]

    run(scenario)


def test_acks_zero_is_done_when_written() -> None:
    async def scenario() -> None:
        story = Story(acks=0, is_idempotent=False)
        assert await story.outcome(story.send()) == -1
        assert story.broker.batches == [(-1, -1, 1)]

    run(scenario)


def test_closing_fails_the_remaining_batches() -> None:
    async def scenario() -> None:
        story = Story()
        story.broker.hold = True
        futures = [story.send() for _ in range(7)]
        story.sender.turn()
        await story.sent(1)
        error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        story.sender.fail_all(error)
        assert [future.exception(0) for future in futures] == [error] * 7
        assert story.accumulator.used_bytes == 0

    run(scenario)


def test_a_refusal_that_names_the_new_leader_needs_no_metadata_and_no_pause() -> None:
    async def scenario() -> None:
        story = Story(backoff_seconds=60.0, backoff_seconds_max=60.0)
        story.broker.answers = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        story.broker.new_leader = 2
        assert await story.outcome(story.send()) == 0
        assert story.broker.learned == {TopicPartition("t", 0): Leader(2, 5)}
        assert (story.broker.leader, story.broker.refreshes) == (2, 0)

    run(scenario)


def test_while_the_last_transaction_is_completed_the_pauses_are_short() -> None:
    async def scenario() -> None:
        story = Story(backoff_seconds=60.0, backoff_seconds_max=60.0)
        story.broker.answers = [ErrorCode.CONCURRENT_TRANSACTIONS] * 3
        assert await story.outcome(story.send()) == 0

    run(scenario)
