"""The other brokers of the cluster: their addresses, and connections to them by purpose.

    answer = await peers.send(2, ALTER_PARTITION, request, purpose="control", within_seconds=30)

Each purpose has its own connection, so that a fetch that waits for records does not delay an ISR change. The
address comes from the newest image, for the listener that brokers use among themselves. When a broker leaves,
moves or registers again, its connections are closed, and requests that wait for an answer get a
DisconnectedError. After a failed attempt the next one waits: see net/connections.py. Only for the event
loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.broker.peer_security import peer_security
from barnabas.errors import (
    AuthenticationError,
    ClosedError,
    DisconnectedError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
)
from barnabas.net.broker_connection import BrokerConnection, ConnectionSettings
from barnabas.net.connections import Address, Connections

if TYPE_CHECKING:
    from barnabas.config.values import BrokerConfig
    from barnabas.metadata.image import MetadataImage
    from barnabas.wire.message import Message

_log = logging.getLogger(__name__)

CONTROL = "control"
# ApiVersions lists the APIs that only brokers use to peers that name this software.
BROKER_SOFTWARE_NAME = "barnabas-broker"


class _Place(NamedTuple):
    """Where a broker is, and which start of it."""

    host: str
    port: int
    epoch: int


class _Peer(NamedTuple):
    place: _Place
    connections: Connections


class Peers:
    """`image` returns the newest image; `listener_name` is the listener that brokers use."""

    def __init__(
        self, image: Callable[[], MetadataImage], listener_name: str, settings: ConnectionSettings
    ) -> None:
        self._image = image
        self._listener_name = listener_name
        self._settings = settings
        self._peers: dict[int, _Peer] = {}
        self._refusals: dict[int, str] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def connection(self, broker_id: int, purpose: str = CONTROL) -> BrokerConnection:
        """The open connection for this purpose, or a new one. DisconnectedError if it cannot be opened;
        BROKER_NOT_AVAILABLE if the broker is not registered, or not on the listener between brokers."""
        peer = self._peer(broker_id)
        place = peer.place
        try:
            return await peer.connections.open(Address(place.host, place.port, purpose))
        except ClosedError:
            raise _gone(broker_id) from None
        except AuthenticationError as error:
            raise self._refused(broker_id, error) from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The attempt to connect was cancelled, not this caller.
            raise _gone(broker_id) from None

    async def send(
        self, broker_id: int, api_key: int, message: Message, *, purpose: str, within_seconds: float
    ) -> Any:
        """Send a request and return its answer; connecting and answering share the time. A request that is
        not answered in time closes the connection (KafkaTimeoutError)."""
        opened = self.existing(broker_id, purpose)
        if opened is not None:
            return await opened.send(api_key, message, within=within_seconds)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_seconds
        try:
            async with asyncio.timeout_at(deadline):
                connection = await self.connection(broker_id, purpose)
        except TimeoutError as error:
            if isinstance(error, KafkaError):
                raise
            text = f"cannot connect to broker {broker_id} within {within_seconds:g} s"
            raise KafkaTimeoutError(text) from None
        return await connection.send(api_key, message, within=max(deadline - loop.time(), 0.0))

    def existing(self, broker_id: int, purpose: str) -> BrokerConnection | None:
        """The connection for this purpose, if it is open."""
        peer = self._peer(broker_id)
        return peer.connections.existing(Address(peer.place.host, peer.place.port, purpose))

    def follow(self, image: MetadataImage) -> None:
        """Close the connections to brokers that left, moved or registered again."""
        for broker_id, peer in list(self._peers.items()):
            if self._place(image, broker_id) != peer.place:
                self._forget(broker_id)

    async def close(self) -> None:
        self._is_closed = True
        for broker_id in list(self._peers):
            self._forget(broker_id)
        if self._closing:
            await asyncio.wait(self._closing)

    def _refused(self, broker_id: int, error: AuthenticationError) -> DisconnectedError:
        """What is fatal for a client is not for a broker: certificates and users are changed while it runs.
        So it goes on trying, and the log has the reason once."""
        if self._refusals.get(broker_id) != error.message:
            self._refusals[broker_id] = error.message
            _log.error("cannot connect to broker %d: %s", broker_id, error.message)
        return DisconnectedError(f"broker {broker_id} and this one do not accept each other: {error.message}")

    def _peer(self, broker_id: int) -> _Peer:
        place = self._place(self._image(), broker_id)
        if place is None or self._is_closed:
            raise KafkaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"broker {broker_id} has no address on the listener {self._listener_name}",
            )
        peer = self._peers.get(broker_id)
        if peer is not None and peer.place != place:
            self._forget(broker_id)
            peer = None
        if peer is None:
            peer = self._peers[broker_id] = _Peer(place, Connections(self._settings))
        return peer

    def _place(self, image: MetadataImage, broker_id: int) -> _Place | None:
        broker = image.brokers.get(broker_id)
        listener = None if broker is None else broker.listener(self._listener_name)
        if broker is None or listener is None:
            return None
        return _Place(listener.host, listener.port, broker.epoch)

    def _forget(self, broker_id: int) -> None:
        closing = asyncio.get_running_loop().create_task(self._peers.pop(broker_id).connections.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


def _gone(broker_id: int) -> DisconnectedError:
    return DisconnectedError(
        f"broker {broker_id} left, or was registered again, during the connection attempt"
    )


def peer_settings(current: Callable[[], BrokerConfig]) -> ConnectionSettings:
    """How this broker connects to others. `current` returns its settings, some of which may change."""
    config = current()
    return ConnectionSettings(
        client_id=f"broker-{config.node_id}",
        software_name=BROKER_SOFTWARE_NAME,
        request_seconds=config["controller.socket.timeout.ms"] / 1000,
        security=peer_security(current),
    )
