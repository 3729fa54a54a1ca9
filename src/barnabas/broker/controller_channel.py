"""Requests of this broker to the controller, whichever broker that is.

    answer = await broker.controller_channel.send(ALTER_PARTITION, request, within_seconds=30)

If this broker is the controller, its own handler answers. Otherwise the request goes to the controller that
the image names: APIs between brokers over the control connection of that peer, APIs of clients in an Envelope
(forwarding.py) over a connection of their own. An attempt is repeated when there is no controller, when it is
not the controller any more, and when the connection breaks. The change may have been made in that case, so
callers must accept the answer to a repeated request (TOPIC_ALREADY_EXISTS). An attempt also ends when the
image names a new controller, so that a controller that hangs delays nobody longer than its session. If the
controller cannot be reached, other brokers are asked to relay the request (controller_relay.py). Only for the
event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.call import Call
from barnabas.broker.controller_relay import ControllerId, ControllerRelay, send_while_reachable
from barnabas.broker.forwarding import FORWARD_SECONDS_MAX, FORWARDED, OFFSET, Sender, has_error
from barnabas.broker.peers import CONTROL
from barnabas.broker.portions import copied
from barnabas.broker.session import Session
from barnabas.broker.turns import completed
from barnabas.errors import DisconnectedError, ErrorCode, KafkaError, KafkaTimeoutError, error_of
from barnabas.net.connections import Backoff
from barnabas.wire.codec import RequestHeader, decode_response, encode_request
from barnabas.wire.messages import envelope
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.metadata.image import MetadataImage
    from barnabas.net.connection import Connection
    from barnabas.wire.message import Message

# Forwarded requests may take long. They must not delay heartbeats and ISR changes.
FORWARDING = "forwarding"
RETRY_SECONDS = 0.05
RETRY_SECONDS_MAX = 1.0
NO_CONTROLLER = -1
# Errors after which another controller, or the same one a little later, may answer.
_RETRIED = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
)


class _ControllerChanged(Exception):
    """The image names another controller than the one that was asked."""


class _NoConnection:
    """Takes the place of the connection in a call that this broker makes itself."""

    peer_host = ""
    peer_port = 0


class ControllerChannel:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._backoff = Backoff(RETRY_SECONDS, RETRY_SECONDS_MAX)
        self._relay = ControllerRelay(broker)

    async def send(self, api_key: int, message: Message, *, within_seconds: float) -> Any:
        """The controller's answer. REQUEST_TIMED_OUT (a KafkaTimeoutError that says why) if there is none in
        time. Errors in the answer other than NOT_CONTROLLER are left to the caller. After the answer to an
        API of clients, the local image has the change."""
        if api_key not in FORWARDED or self._broker.controller.active:
            return await self._ask(api_key, message, CONTROL, within_seconds)
        version = self._broker.rows[api_key].versions[1]
        header = RequestHeader(api_key, version, 0, self._client_id)
        frame = b"".join(cast(list[bytes], encode_request(header, message)))[4:]
        answer = await self.forward(frame, None, within_seconds=within_seconds)
        return decode_response(api_key, version, answer)[1]

    async def forward(
        self, frame: bytes | memoryview, client: Session | None, *, within_seconds: float
    ) -> memoryview:
        """The controller's answer to the frame of a client (None: of this broker), a frame too (both without
        the size in front), when the local image has the change. KafkaError if the controller refuses the
        envelope, or the time is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_seconds
        sender = Sender(
            self._broker.id,
            self._broker.metadata.broker_epoch,
            principal=None if client is None else client.principal,
        )
        request = EnvelopeRequest(
            request_data=cast(bytes, frame),
            request_principal=sender.to_bytes(),
            client_host_address=_address_bytes("" if client is None else client.host),
        )
        answer: EnvelopeResponse = await self._ask(envelope.API_KEY, request, FORWARDING, within_seconds)
        if answer.error_code != ErrorCode.NONE or answer.response_data is None:
            raise KafkaError(error_of(answer.error_code), "the controller refused to answer the request")
        (offset,) = OFFSET.unpack_from(answer.response_data)
        # If the metadata does not come in time, the answer is still right; only this broker is late.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                reached = self._broker.metadata.follower.reached(offset)
                await self._broker.replicas.settled_after(reached)
        return memoryview(answer.response_data)[OFFSET.size :]

    async def relay(self, request: EnvelopeRequest) -> EnvelopeResponse:
        """The answer to the envelope of a broker that cannot reach the controller itself."""
        controller = self._controller(self._broker.image)
        if controller.broker_id in (NO_CONTROLLER, self._broker.id):
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        sender = Sender.from_bytes(request.request_principal or b"")
        relayed = EnvelopeRequest(
            request_data=request.request_data,
            request_principal=sender._replace(is_relayed=True).to_bytes(),
            client_host_address=request.client_host_address,
        )
        try:
            answer: EnvelopeResponse = await send_while_reachable(
                self._broker,
                controller.broker_id,
                envelope.API_KEY,
                relayed,
                purpose=FORWARDING,
                within_seconds=FORWARD_SECONDS_MAX,
            )
            return answer
        except KafkaError:
            return EnvelopeResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)

    async def _ask(self, api_key: int, message: Message, purpose: str, within_seconds: float) -> Any:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_seconds
        failures = 0
        reason = "there is no controller"
        while (left := deadline - loop.time()) > 0:
            asked_controller = self._controller(self._broker.image)
            try:
                answer = await self._attempt(api_key, message, purpose, left)
                if not has_error(answer, ErrorCode.NOT_CONTROLLER):
                    return answer
                reason = f"broker {asked_controller.broker_id} is not the controller any more"
            except KafkaError as error:
                if error.code not in _RETRIED:
                    raise
                reason = error.message
            except _ControllerChanged:
                continue
            failures += 1
            await self._pause(min(self._backoff.seconds(failures), deadline - loop.time()), asked_controller)
        raise KafkaTimeoutError(f"got no answer from the controller within {within_seconds:g} s: {reason}")

    async def _attempt(self, api_key: int, message: Message, purpose: str, seconds: float) -> Any:
        if self._broker.controller.active:
            return await self._answer_here(api_key, message)
        asked_controller = self._controller(self._broker.image)
        if asked_controller.broker_id in (NO_CONTROLLER, self._broker.id):
            raise DisconnectedError("there is no controller")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        if self._relay.avoids(asked_controller):
            answer = await self._relay.ask(asked_controller, api_key, message, seconds)
            if answer is not None:
                return answer
        try:
            answer = await self._send(asked_controller, api_key, message, purpose, deadline - loop.time())
        except KafkaError as error:
            if error.code not in _RETRIED:
                raise
            self._relay.avoid(asked_controller)
            # This is not given up for a new controller: the broker that relays may have found it already.
            answer = await self._relay.ask(asked_controller, api_key, message, deadline - loop.time())
            if answer is None:
                raise
        else:
            self._relay.reached()
        return answer

    async def _send(
        self, controller: ControllerId, api_key: int, message: Message, purpose: str, seconds: float
    ) -> Any:
        """The answer of this controller; _ControllerChanged if there is another one before."""
        sending = asyncio.ensure_future(
            send_while_reachable(
                self._broker,
                controller.broker_id,
                api_key,
                message,
                purpose=purpose,
                within_seconds=seconds,
            )
        )
        changed = asyncio.ensure_future(self._changed(controller))
        try:
            await asyncio.wait((sending, changed), return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                raise _ControllerChanged
            return sending.result()
        finally:
            sending.cancel()
            changed.cancel()

    async def _answer_here(self, api_key: int, message: Message) -> Any:
        row = self._broker.rows[api_key]
        header = RequestHeader(api_key, row.versions[1], 0, self._client_id)
        connection = cast("Connection", _NoConnection())
        session = Session(self._broker.config.inter_broker_listener, "", is_trusted=True)
        call = Call(self._broker, connection, session, header)
        # The message may be needed again, for the next controller.
        return await completed(row.handler(call, copied(message)))

    async def _pause(self, seconds: float, asked_controller: ControllerId) -> None:
        """Wait a little, or until the image names another controller."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._changed(asked_controller)

    async def _changed(self, asked_controller: ControllerId) -> None:
        await self._broker.metadata.follower.until(lambda image: self._controller(image) != asked_controller)

    def _controller(self, image: MetadataImage) -> ControllerId:
        return ControllerId(image.controller_id, image.controller_epoch)

    @property
    def _client_id(self) -> str:
        return f"broker-{self._broker.id}"


def _address_bytes(host: str) -> bytes:
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            return socket.inet_pton(family, host)
    return b""
