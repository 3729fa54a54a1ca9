"""The controller channel finds the controller, and keeps asking while it changes."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.scripted_peer import CLOSE, SILENCE, Answer, ScriptedPeer, versions

from barnabas.broker import controller_relay
from barnabas.broker.broker import Broker
from barnabas.broker.call import Api, Call
from barnabas.broker.controller_channel import ControllerChannel
from barnabas.broker.forwarding import OFFSET
from barnabas.broker.peers import Peers
from barnabas.config.values import BrokerConfig
from barnabas.errors import ErrorCode, KafkaTimeoutError
from barnabas.ids import ZERO_UUID
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import BrokerRecord, ControllerRecord, Listener, MetadataRecord
from barnabas.net.broker_connection import ConnectionSettings
from barnabas.wire.codec import Request, encode_response
from barnabas.wire.messages import allocate_producer_ids, envelope
from barnabas.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from barnabas.wire.messages.envelope import EnvelopeResponse

KEY = allocate_producer_ids.API_KEY
ENVELOPE = envelope.API_KEY


class FakeMetadata:
    """An image that the test changes, with the `until` of the real follower."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.follower = self
        self.broker_epoch = 7
        # The epochs of deposed controllers.
        self.deposed: list[int] = []
        self._waiting: list[tuple[Callable[[MetadataImage], bool], asyncio.Future[None]]] = []

    def take(self, *records: MetadataRecord) -> None:
        self.image = self.image.apply(records)
        for predicate, waiter in self._waiting:
            if predicate(self.image) and not waiter.done():
                waiter.set_result(None)

    async def depose_controller(self, epoch: int) -> None:
        self.deposed.append(epoch)

    async def until(self, predicate: Callable[[MetadataImage], bool]) -> None:
        if not predicate(self.image):
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append((predicate, waiter))
            await waiter


class FakeBroker:
    """Broker 1, without a server: what the channel uses of a broker."""

    def __init__(self, *peers: ScriptedPeer) -> None:
        self.id = 1
        self.metadata = FakeMetadata()
        self.controller = SimpleNamespace(active=False)
        self.config = BrokerConfig({"zookeeper.session.timeout.ms": "1000"})
        self.peers = Peers(lambda: self.image, "PLAINTEXT", ConnectionSettings())
        self.channel = ControllerChannel(cast(Broker, self))
        self.answered_here = 0
        self.rows = {KEY: Api(KEY, "AllocateProducerIds", (0, 0), self._allocate)}
        for number, peer in enumerate(peers, 2):
            listeners = (Listener("PLAINTEXT", "127.0.0.1", peer.port),)
            self.metadata.take(BrokerRecord(number, number, ZERO_UUID, listeners, fenced=False))

    @property
    def image(self) -> MetadataImage:
        return self.metadata.image

    def names_controller(self, broker_id: int, epoch: int) -> None:
        self.metadata.take(ControllerRecord(broker_id, epoch))

    async def allocate(self, within_seconds: float = 20) -> AllocateProducerIdsResponse:
        request = AllocateProducerIdsRequest(broker_id=self.id, broker_epoch=7)
        answer = await self.channel.send(KEY, request, within_seconds=within_seconds)
        return cast(AllocateProducerIdsResponse, answer)

    async def _allocate(self, call: Call, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        self.answered_here += 1
        assert call.version == 0
        return AllocateProducerIdsResponse(producer_id_start=request.broker_epoch)


def serving(*answers: Answer) -> Callable[[Request], Answer]:
    """A broker that gives these answers in turn; the last one again and again."""
    left = list(answers)

    def answer(request: Request) -> Answer:
        if request.header.api_key != KEY:
            return versions({KEY: (0, 0)})
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


def block(start: int) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(producer_id_start=start)


def refused() -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)


def run(story: Callable[[FakeBroker], Coroutine[Any, Any, None]], *peers: ScriptedPeer) -> None:
    async def play() -> None:
        broker = FakeBroker(*peers)
        try:
            await story(broker)
        finally:
            await broker.peers.close()

    asyncio.run(asyncio.wait_for(play(), 30))


def test_the_controller_itself_answers_without_a_connection() -> None:
    async def story(broker: FakeBroker) -> None:
        broker.controller.active = True
        assert (await broker.allocate()).producer_id_start == 7
        assert broker.answered_here == 1

    run(story)


def test_the_controller_of_the_image_is_asked() -> None:
    async def story(broker: FakeBroker) -> None:
        broker.names_controller(2, 5)
        assert (await broker.allocate()).producer_id_start == 1000

    with ScriptedPeer(serving(block(1000))) as peer:
        run(story, peer)


def test_a_request_waits_for_a_controller() -> None:
    async def story(broker: FakeBroker) -> None:
        asking = asyncio.ensure_future(broker.allocate())
        await asyncio.sleep(0.1)
        assert not asking.done()
        broker.names_controller(2, 5)
        assert (await asking).producer_id_start == 1000

    with ScriptedPeer(serving(block(1000))) as peer:
        run(story, peer)


def test_a_request_is_repeated_after_not_controller_and_after_a_disconnect() -> None:
    async def story(broker: FakeBroker) -> None:
        broker.names_controller(2, 5)
        assert (await broker.allocate()).producer_id_start == 1000

    with ScriptedPeer(serving(refused(), CLOSE, block(1000))) as peer:
        run(story, peer)
        assert peer.connections == 2


def test_a_former_controller_that_is_silent_is_left_for_the_new_one() -> None:
    async def story(broker: FakeBroker) -> None:
        broker.names_controller(2, 5)
        asking = asyncio.ensure_future(broker.allocate())
        await asyncio.to_thread(
            hanging.wait_until, lambda: KEY in [header.api_key for header in hanging.requests]
        )
        broker.names_controller(3, 6)
        assert (await asking).producer_id_start == 2000

    with ScriptedPeer(serving(SILENCE)) as hanging, ScriptedPeer(serving(block(2000))) as new:
        run(story, hanging, new)


def test_a_broker_that_becomes_the_controller_while_it_asks_answers_itself() -> None:
    async def story(broker: FakeBroker) -> None:
        broker.names_controller(2, 5)
        asking = asyncio.ensure_future(broker.allocate())
        await asyncio.to_thread(peer.wait_until, lambda: KEY in [header.api_key for header in peer.requests])
        broker.controller.active = True
        broker.names_controller(1, 6)
        assert (await asking).producer_id_start == 7

    with ScriptedPeer(serving(refused())) as peer:
        run(story, peer)


def test_when_the_time_is_over_the_error_says_why() -> None:
    async def story(broker: FakeBroker) -> None:
        with pytest.raises(KafkaTimeoutError, match=r"within 0\.2 s: there is no controller"):
            await broker.allocate(within_seconds=0.2)
        broker.names_controller(2, 5)
        with pytest.raises(KafkaTimeoutError, match="broker 2 is not the controller any more"):
            await broker.allocate(within_seconds=0.5)

    with ScriptedPeer(serving(refused())) as peer:
        run(story, peer)


def test_other_errors_are_left_to_the_caller() -> None:
    async def story(broker: FakeBroker) -> None:
        broker.names_controller(2, 5)
        assert (await broker.allocate()).error_code == ErrorCode.STALE_BROKER_EPOCH

    stale = AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    with ScriptedPeer(serving(stale)) as peer:
        run(story, peer)


# ---- a controller that cannot be reached: broker 2; broker 3 may reach it


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_relay, "PING_AFTER_SECONDS", 0.05)
    monkeypatch.setattr(controller_relay, "PING_SECONDS_MAX", 0.2)


def silent(request: Request) -> Answer:
    """The network to this broker is cut after the connection was made."""
    return versions({KEY: (0, 0), ENVELOPE: (0, 0)}) if request.header.correlation_id == 1 else SILENCE


def relaying(answer: EnvelopeResponse) -> Callable[[Request], Answer]:
    def serve(request: Request) -> Answer:
        return answer if request.header.api_key == ENVELOPE else versions({KEY: (0, 0), ENVELOPE: (0, 0)})

    return serve


def in_envelope(message: AllocateProducerIdsResponse) -> EnvelopeResponse:
    chunks: list[Any] = encode_response(KEY, 0, 0, message)
    return EnvelopeResponse(response_data=OFFSET.pack(5) + b"".join(chunks)[4:])


NOT_REACHED_EITHER = EnvelopeResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)


def test_another_broker_relays_to_a_controller_that_cannot_be_reached(impatient: None) -> None:
    async def story(broker: FakeBroker) -> None:
        broker.names_controller(2, 5)
        assert (await broker.allocate()).producer_id_start == 3000
        assert not broker.metadata.deposed

    with ScriptedPeer(silent) as controller, ScriptedPeer(relaying(in_envelope(block(3000)))) as relay:
        run(story, controller, relay)


def test_the_next_request_does_not_try_an_unreachable_controller_first(
    impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> int:
        return [header.api_key for header in controller.requests].count(KEY)

    async def story(broker: FakeBroker) -> None:
        broker.names_controller(2, 5)
        for _ in range(3):
            assert (await broker.allocate()).producer_id_start == 3000
        assert asked() == 1
        # After a while it is tried again.
        monkeypatch.setattr(controller_relay, "AVOIDED_SECONDS", 0.0)
        broker.channel = ControllerChannel(cast(Broker, broker))
        for _ in range(2):
            assert (await broker.allocate()).producer_id_start == 3000
        await asyncio.to_thread(controller.wait_until, lambda: asked() == 3)

    with ScriptedPeer(silent) as controller, ScriptedPeer(relaying(in_envelope(block(3000)))) as relay:
        run(story, controller, relay)


def test_a_controller_that_takes_long_but_can_be_reached_is_waited_for(impatient: None) -> None:
    async def story(broker: FakeBroker) -> None:
        broker.names_controller(2, 5)
        asking = asyncio.ensure_future(broker.allocate())
        await asyncio.to_thread(controller.wait_until, lambda: controller.connections == 2)
        await asyncio.sleep(0.5)
        assert not asking.done()
        assert ENVELOPE not in [header.api_key for header in other.requests]
        asking.cancel()

    with (
        ScriptedPeer(serving(SILENCE)) as controller,
        ScriptedPeer(relaying(in_envelope(block(3000)))) as other,
    ):
        run(story, controller, other)


def test_a_controller_that_no_broker_reaches_is_deposed(impatient: None) -> None:
    async def story(broker: FakeBroker) -> None:
        broker.names_controller(2, 5)
        began = asyncio.get_running_loop().time()
        with pytest.raises(KafkaTimeoutError):
            await broker.allocate(within_seconds=4)
        assert set(broker.metadata.deposed) == {5}
        assert asyncio.get_running_loop().time() - began >= 1

    with ScriptedPeer(silent) as controller, ScriptedPeer(relaying(NOT_REACHED_EITHER)) as other:
        run(story, controller, other)


def test_a_broker_that_reaches_nobody_deposes_nobody(impatient: None) -> None:
    async def story(broker: FakeBroker) -> None:
        broker.names_controller(2, 5)
        with pytest.raises(KafkaTimeoutError, match="got no answer from the controller within 3 s"):
            await broker.allocate(within_seconds=3)
        assert not broker.metadata.deposed

    with ScriptedPeer(silent) as controller, ScriptedPeer(silent) as other:
        run(story, controller, other)
