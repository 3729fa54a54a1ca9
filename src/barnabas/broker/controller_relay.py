"""If this broker cannot reach the controller, other brokers relay its requests, or the controller is deposed.

The controller has a session in ZooKeeper, which says nothing about the network between brokers. If only this
broker is cut off from it, another one that reaches both relays requests (in an Envelope, forwarding.py). If
no other broker reaches it either, it cannot do its work: nobody could remove replicas from an ISR, and
nothing would be committed. So after the time after which a silent broker counts as dead, it is deposed, and
the next candidate becomes the controller. A broker that reaches no other broker deposes nobody: then it is
this broker that is cut off. Only for the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from barnabas.broker.forwarding import OFFSET, Sender
from barnabas.errors import DisconnectedError, ErrorCode, KafkaError
from barnabas.metadata.store import StoreError
from barnabas.wire.apis import API_VERSIONS_KEY
from barnabas.wire.codec import RequestHeader, decode_response, encode_request
from barnabas.wire.messages import envelope
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.wire.message import Message

logger = logging.getLogger(__name__)

RELAY, PING = "relay", "ping"
# A broker that has not answered a request for the first time, and then a small one for the second, is not
# reachable. The small one has a connection of its own.
PING_AFTER_SECONDS = 1.0
PING_SECONDS_MAX = 2.0
# A controller that could not be reached is asked through others for this long, before it is tried again.
AVOIDED_SECONDS = 10.0


class ControllerId(NamedTuple):
    broker_id: int
    epoch: int


async def send_while_reachable(
    broker: Broker, receiver: int, api_key: int, message: Message, *, purpose: str, within_seconds: float
) -> Any:
    """Like Peers.send. But a broker may take long to answer, and one behind a network that is cut never
    answers: while there is no answer, it is made sure that the broker can be reached. DisconnectedError if it
    cannot."""
    peers = broker.peers
    sending = asyncio.ensure_future(
        peers.send(receiver, api_key, message, purpose=purpose, within_seconds=within_seconds)
    )
    try:
        while not (await asyncio.wait((sending,), timeout=PING_AFTER_SECONDS))[0]:
            ping = ApiVersionsRequest(client_software_name="barnabas-broker", client_software_version="0")
            await peers.send(receiver, API_VERSIONS_KEY, ping, purpose=PING, within_seconds=PING_SECONDS_MAX)
        return sending.result()
    except KafkaError as error:
        if sending.done():
            raise
        raise DisconnectedError(f"broker {receiver} cannot be reached: {error.message}") from error
    finally:
        sending.cancel()


class ControllerRelay:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # The controller that this broker cannot reach, and since when.
        self._missed: ControllerId | None = None
        self._missed_since = 0.0
        # The controller that is asked through others at once, and until when.
        self._avoided: ControllerId | None = None
        self._avoided_until = 0.0

    def reached(self) -> None:
        """A request of this broker has reached the controller."""
        self._missed = self._avoided = None

    def avoid(self, controller: ControllerId) -> None:
        """This broker could not reach the controller: the next requests are not to try that again."""
        self._avoided = controller
        self._avoided_until = asyncio.get_running_loop().time() + AVOIDED_SECONDS

    def avoids(self, controller: ControllerId) -> bool:
        return self._avoided == controller and asyncio.get_running_loop().time() < self._avoided_until

    async def ask(
        self, controller: ControllerId, api_key: int, message: Message, within_seconds: float
    ) -> Any:
        """The answer of a controller that this broker cannot reach itself; None if no other broker can."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_seconds
        if self._missed != controller:
            self._missed, self._missed_since = controller, loop.time()
        is_missed_by_others = False
        for broker_id in self._others(controller):
            try:
                answer = await self._ask_through(broker_id, api_key, message, deadline - loop.time())
            except KafkaError:
                continue
            if answer is not None:
                return answer
            is_missed_by_others = True
        if is_missed_by_others and loop.time() - self._missed_since >= self._patience_seconds:
            await self._depose(controller)
        return None

    async def _ask_through(self, broker_id: int, api_key: int, message: Message, seconds: float) -> Any:
        """The controller's answer through this broker; None if this broker cannot reach the controller."""
        version = self._broker.rows[api_key].versions[1] if api_key != envelope.API_KEY else 0
        request = message if api_key == envelope.API_KEY else self._envelope(api_key, version, message)
        answer: EnvelopeResponse = await send_while_reachable(
            self._broker, broker_id, envelope.API_KEY, request, purpose=RELAY, within_seconds=seconds
        )
        if answer.error_code == ErrorCode.BROKER_NOT_AVAILABLE:
            return None
        self._missed = None
        if api_key == envelope.API_KEY:
            return answer
        if answer.error_code != ErrorCode.NONE or answer.response_data is None:
            raise DisconnectedError(f"broker {broker_id} cannot relay a request to the controller")
        return decode_response(api_key, version, memoryview(answer.response_data)[OFFSET.size :])[1]

    def _envelope(self, api_key: int, version: int, message: Message) -> EnvelopeRequest:
        header = RequestHeader(api_key, version, 0, f"broker-{self._broker.id}")
        frame = b"".join(cast(list[bytes], encode_request(header, message)))[4:]
        sender = Sender(self._broker.id, self._broker.metadata.broker_epoch).to_bytes()
        return EnvelopeRequest(request_data=frame, request_principal=sender, client_host_address=b"")

    def _others(self, controller: ControllerId) -> Iterator[int]:
        image = self._broker.image
        for broker_id in sorted(image.brokers):
            if image.alive(broker_id) and broker_id not in (self._broker.id, controller.broker_id):
                yield broker_id

    @property
    def _patience_seconds(self) -> float:
        seconds: float = self._broker.config["zookeeper.session.timeout.ms"] / 1000
        return seconds

    async def _depose(self, controller: ControllerId) -> None:
        logger.warning(
            "no broker has reached the controller, broker %d, for %.0f s; deposing it",
            controller.broker_id,
            self._patience_seconds,
        )
        try:
            await self._broker.metadata.depose_controller(controller.epoch)
        except StoreError as error:
            logger.warning("cannot depose the controller: %s", error)
