"""The short way of batches, over real sockets: a broker that checks sequences, and answers that are not
plain. The same stories run on the ordinary way."""

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.support.scripted_peer import CLOSE, SILENCE, Answer, ScriptedPeer, versions

from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.client.producer.accumulator import Accumulator, Limits, Record, TopicQueues
from barnabas.client.producer.batch import Packing
from barnabas.client.producer.direct import DirectSending
from barnabas.client.producer.ports import SenderSettings
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.sequences import SequenceBook
from barnabas.client.types import TopicPartition
from barnabas.kernels.record_append import RecordFuture
from barnabas.kernels.record_decode import decode_records
from barnabas.net.broker_connection import BrokerConnection, ConnectionSettings
from barnabas.records.batch import HEADER_SIZE, read_header
from barnabas.wire.codec import Request
from barnabas.wire.messages import init_producer_id, produce

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
LATEST = 12


class Broker:
    """Appends batches whose sequence is the next one, and refuses others as Kafka does. `answers` come
    first: an error, CLOSE (before or after the append), or None for what is right."""

    def __init__(self, latest: int) -> None:
        self.latest = latest
        self.log: list[bytes] = []
        self.requests = 0
        self.refuse: Callable[[int], ErrorCode | str | None] = lambda _: None
        self.throttle_ms = 0
        self.expected = (0, 0)
        self.appended: dict[tuple[int, int], int] = {}

    def answer(self, request: Request) -> Answer:
        if request.header.api_key == 18:
            return versions({produce.API_KEY: (3, self.latest), init_producer_id.API_KEY: (0, 4)})
        if request.header.api_key == init_producer_id.API_KEY:
            return init_producer_id.InitProducerIdResponse(producer_id=7, producer_epoch=0)
        (topic,) = request.message.topic_data
        (part,) = topic.partition_data
        self.requests += 1
        trouble = self.refuse(self.requests)
        if trouble in (CLOSE, SILENCE):
            return str(trouble)
        if trouble == "close after":
            self._append(bytes(part.records))
            return CLOSE
        code, offset = (trouble, -1) if trouble is not None else self._append(bytes(part.records))
        answer = produce.PartitionProduceResponse(
            index=0, error_code=int(code), base_offset=offset, log_start_offset=0
        )
        response = produce.TopicProduceResponse(name="t", partition_responses=[answer])
        return produce.ProduceResponse(responses=[response], throttle_time_ms=self.throttle_ms)

    def _append(self, batch: bytes) -> tuple[ErrorCode, int]:
        header = read_header(batch)
        place = (header.producer_epoch, header.base_sequence)
        if place in self.appended:
            return ErrorCode.NONE, self.appended[place]
        if header.producer_epoch > self.expected[0]:
            self.expected = (header.producer_epoch, 0)
        if place != self.expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        offset = self.appended[place] = len(self.log)
        self.expected = (header.producer_epoch, header.base_sequence + header.count)
        records = decode_records(batch[HEADER_SIZE:], 0, header.count, header.base_timestamp, 0)
        self.log += [value for _, value, _, _, _ in records]
        return ErrorCode.NONE, offset


class View:
    """A cluster of one broker."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.opened: BrokerConnection | None = None
        self._opening = asyncio.Lock()

    def leader_of(self, partition: TopicPartition) -> int | None:
        return 1

    def learn_leaders(self, *_: object) -> None: ...

    async def refresh(self) -> None: ...

    async def connection(self, node_id: int) -> BrokerConnection:
        async with self._opening:
            if self.opened is None or self.opened.is_closed:
                settings = ConnectionSettings(client_id="test")
                self.opened = await BrokerConnection.open("127.0.0.1", self.port, settings)
        return self.opened

    async def any(self) -> BrokerConnection:
        return await self.connection(1)

    def avoid(self, node_id: int) -> None: ...


class Story:
    def __init__(self, port: int, **changes: Any) -> None:
        self.view = View(port)
        self.accumulator = Accumulator(Limits(200, 10_000_000, 10_000, 0.0), lambda: None)
        self.queue = TopicQueues("t", 1).queues[0]
        book = SequenceBook(is_transactional=False)
        self.sender = Sender(self.accumulator, self.view, SETTINGS._replace(**changes), book, None)
        self.futures: list[RecordFuture] = []

    def send(self, count: int) -> None:
        """Records with numbers; each fills a batch."""
        for number in range(len(self.futures), len(self.futures) + count):
            value = b"%d" % number + bytes(150)
            self.futures.append(self.accumulator.append(self.queue, Record(1, None, value, None), 1e6))
        self.sender.turn()

    async def stop(self) -> None:
        for task in self.sender._tasks.values():
            task.cancel()
        if self.view.opened is not None:
            self.view.opened.close()
        await asyncio.sleep(0.01)

    async def settled(self) -> list[Any]:
        """The offsets or errors of all records so far."""
        for _ in range(20_000):
            if all(future.done() for future in self.futures):
                return [future.exception(0) or future.result(0).offset for future in self.futures]
            await asyncio.sleep(0.001)
        raise AssertionError("no outcome")


@pytest.fixture(params=[True, False], ids=["short", "ordinary"])
def runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches took the short way, run by run. The ordinary way is all there is in half of the
    tests."""
    counts: list[int] = []
    send = DirectSending._send

    def counted(self: DirectSending, lane: Any, batches: list[Any], when_answered: Any) -> bool:
        has_sent = send(self, lane, batches, when_answered)
        counts.append(lane.exchange.begun)
        return has_sent

    monkeypatch.setattr(DirectSending, "_send", counted)
    if not request.param:
        monkeypatch.setattr(DirectSending, "send", lambda *_: False)
        counts.append(-1)
    return counts


def play(
    story: Callable[[Story, Broker], Coroutine[Any, Any, None]], latest: int = LATEST, **changes: Any
) -> Broker:
    broker = Broker(latest)

    async def run(port: int) -> None:
        told = Story(port, **changes)
        try:
            await story(told, broker)
        finally:
            await told.stop()

    with ScriptedPeer(broker.answer) as peer:
        asyncio.run(run(peer.port))
    return broker


def is_short(runs: list[int]) -> bool:
    return runs != [-1]


def numbers(log: list[bytes]) -> list[int]:
    return [int(value.rstrip(b"\0")) for value in log]


def test_many_batches_are_appended_in_order(runs: list[int]) -> None:
    async def story(told: Story, broker: Broker) -> None:
        told.send(1)
        assert await told.settled() == [0]
        told.send(300)
        assert await told.settled() == list(range(301))
        told.send(20)
        assert await told.settled() == list(range(321))
        assert told.accumulator.used_bytes == 0
        assert told.accumulator.unfinished() == []
        assert told.sender.metrics["record-send-total"] == 321
        assert told.queue.on_wire == 0

    broker = play(story)
    assert numbers(broker.log) == list(range(321))
    assert broker.requests == 321
    assert sum(runs) > 200 if is_short(runs) else runs == [-1]


def test_the_first_batch_of_a_partition_goes_the_ordinary_way_alone(runs: list[int]) -> None:
    async def story(told: Story, broker: Broker) -> None:
        told.send(10)
        assert await told.settled() == list(range(10))

    broker = play(story)
    assert numbers(broker.log) == list(range(10))


TROUBLES = [
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    CLOSE,
    "close after",
]


@pytest.mark.parametrize("trouble", TROUBLES, ids=str)
@pytest.mark.parametrize("at", [2, 3, 7, 50])
def test_after_a_trouble_nothing_is_lost_doubled_or_out_of_order(
    runs: list[int], trouble: Any, at: int
) -> None:
    async def story(told: Story, broker: Broker) -> None:
        told.send(1)
        await told.settled()
        broker.refuse = lambda number: trouble if number == at else None
        told.send(80)
        assert await told.settled() == list(range(81))
        assert told.accumulator.used_bytes == 0

    assert numbers(play(story).log) == list(range(81))


@pytest.mark.parametrize("seed", range(10))
def test_after_many_troubles_nothing_is_lost_doubled_or_out_of_order(runs: list[int], seed: int) -> None:
    chance = random.Random(seed)

    async def story(told: Story, broker: Broker) -> None:
        broker.refuse = lambda _: chance.choice(TROUBLES) if chance.random() < 0.02 else None
        for _ in range(10):
            told.send(chance.randrange(1, 60))
            if chance.random() < 0.5:
                await asyncio.sleep(0)
        count = len(told.futures)
        assert await told.settled() == list(range(count))
        assert told.accumulator.used_bytes == 0

    broker = play(story)
    assert numbers(broker.log) == list(range(len(broker.log)))


def test_a_batch_that_is_refused_fails_and_the_others_follow_in_a_new_epoch(runs: list[int]) -> None:
    async def story(told: Story, broker: Broker) -> None:
        told.send(1)
        await told.settled()
        broker.refuse = lambda number: ErrorCode.INVALID_RECORD if number == 10 else None
        told.send(40)
        outcomes = await told.settled()
        errors = [outcome for outcome in outcomes if isinstance(outcome, KafkaError)]
        assert [error.code for error in errors] == [ErrorCode.INVALID_RECORD]
        assert outcomes[9] is errors[0]
        assert told.accumulator.used_bytes == 0

    broker = play(story)
    assert numbers(broker.log) == [*range(9), *range(10, 41)]


def test_an_answer_that_throttles_is_the_connections(runs: list[int]) -> None:
    async def story(told: Story, broker: Broker) -> None:
        told.send(1)
        await told.settled()
        broker.throttle_ms = 60_000
        told.send(30)
        assert await told.settled() == list(range(31))
        assert told.view.opened is not None
        # A request that was sent long ago may still wait for its answer.
        assert told.view.opened.seconds_left(0.0, 1.0) > 1.0

    assert numbers(play(story).log) == list(range(31))


@pytest.mark.parametrize(
    ("latest", "changes"),
    [
        (8, {}),
        (12, {"is_idempotent": False}),
        (12, {"acks": 1, "is_idempotent": False}),
        (12, {"packing": Packing(codec=1)}),
    ],
    ids=["old version", "not idempotent", "acks=1", "compressed"],
)
def test_what_is_not_plain_takes_the_ordinary_way(
    runs: list[int], latest: int, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broker, "_append", lambda self, _: (ErrorCode.NONE, self.requests - 1))

    async def story(told: Story, broker: Broker) -> None:
        told.send(1)
        await told.settled()
        told.send(30)
        # Batches without sequences, all at once: the order of the answers is that of the requests.
        assert await told.settled() == list(range(31))

    play(story, latest, **changes)
    assert runs in ([], [-1])


def test_a_broker_that_is_silent_is_given_up_and_the_batches_are_sent_again(runs: list[int]) -> None:
    async def story(told: Story, broker: Broker) -> None:
        told.send(1)
        await told.settled()
        broker.refuse = lambda number: SILENCE if 5 <= number < 12 else None
        told.send(30)
        assert await told.settled() == list(range(31))

    assert numbers(play(story, request_seconds=0.2).log) == list(range(31))


def test_a_slow_broker_is_not_waited_for_again_and_again(runs: list[int]) -> None:
    async def story(told: Story, broker: Broker) -> None:
        told.send(1)
        await told.settled()
        may_go_on = threading.Event()
        broker.refuse = lambda _: None if may_go_on.wait(20) else CLOSE
        told.send(30)
        count = len(runs)
        for _ in range(20):
            told.sender.turn()
        assert len(runs) <= count + 1
        may_go_on.set()
        assert await told.settled() == list(range(31))

    assert numbers(play(story).log) == list(range(31))


def test_a_connection_without_a_common_version_fails_the_batches(runs: list[int]) -> None:
    async def story(told: Story, broker: Broker) -> None:
        told.send(1)
        await told.settled()
        assert told.view.opened is not None
        del told.view.opened.versions[produce.API_KEY]
        told.send(10)
        outcomes = await told.settled()
        assert {error.code for error in outcomes[1:]} == {ErrorCode.UNSUPPORTED_VERSION}

    play(story)


def test_closing_fails_what_is_on_its_way(runs: list[int]) -> None:
    async def story(told: Story, broker: Broker) -> None:
        told.send(1)
        await told.settled()
        broker.refuse = lambda _: SILENCE
        told.send(30)
        error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        told.sender.fail_all(error)
        assert (await told.settled())[1:] == [error] * 30
        assert told.accumulator.used_bytes == 0

    play(story)


def test_callbacks_run_once_and_in_order(runs: list[int]) -> None:
    called: list[int] = []

    async def story(told: Story, broker: Broker) -> None:
        told.send(1)
        await told.settled()
        for number in range(50):
            future = told.accumulator.append(told.queue, Record(1, None, bytes(150), None), 1e6)
            future.add_callback(lambda metadata, error, number=number: called.append(metadata.offset))
            told.futures.append(future)
        told.sender.turn()
        await told.settled()

    play(story)
    assert called == list(range(1, 51))
