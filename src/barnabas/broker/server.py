"""Listening sockets and the connections that came through them: limits, idle peers, closing.

A peer that breaks the protocol loses its own connection and is counted. The log has one line for each of its
hosts and API keys."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.connection_limits import ConnectionLimits
from barnabas.broker.dispatch import PRODUCE_KEY, Dispatcher, Refusal
from barnabas.broker.session import Session
from barnabas.config.definition import ConfigError, Source
from barnabas.net.acceptor import Acceptor
from barnabas.net.addresses import why_not_bound
from barnabas.net.connection import Connection
from barnabas.security.key_stores import TlsError

if TYPE_CHECKING:
    from barnabas.broker.authentication import Authentication
    from barnabas.config.listeners import Listener
    from barnabas.config.values import BrokerConfig

logger = logging.getLogger(__name__)

SWEEP_SECONDS_MAX = 10.0
# A connection that has had no frame for this long gives back the memory of a large buffer.
SHRINK_SECONDS = 10.0
LOCALHOST = "localhost"
# How many refusals (host and API key) are remembered as logged; after that they are logged again.
LOGGED_MAX = 10_000
# No protocol has keys from here on: they count as one, so that a scanner cannot fill the log with them.
API_KEYS_MAX = 256
# In place of an API key, for a TLS handshake.
HANDSHAKE = -1


class Endpoint:
    """One listener: owns its connections and passes their frames to the dispatcher."""

    keys_answered_first = frozenset({PRODUCE_KEY})

    def __init__(self, listener: Listener, server: Server) -> None:
        self.listener = listener
        self.acceptors: list[Acceptor] = []
        self.connections: set[Connection] = set()
        self._server = server

    def start(self, backlog: int) -> None:
        for acceptor in self.acceptors:
            acceptor.start(backlog)

    def opened(self, connection: Connection) -> None:
        connection.session = Session(self.listener, connection.peer_host)
        # First of all: whatever follows, no request is answered before its peer may ask.
        self._server.authentication.guard(connection, self)
        self.connections.add(connection)
        self._server.opened(connection)

    def begin(self, connection: Connection) -> None:
        """The connection may be served now."""
        if connection.session.authenticator is not None:
            connection.session.authenticator.begin()
        if connection.is_muted:
            # In a later turn: this one may belong to the end of another connection.
            asyncio.get_running_loop().call_soon(connection.unmute)

    def answer_first(self, connection: Connection, arrived: memoryview) -> tuple[int, bytearray]:
        return self._server.dispatcher.answer_first(connection, arrived)

    def frame(self, connection: Connection, frame: memoryview) -> None:
        try:
            self._server.dispatcher.serve(connection, frame)
        except Refusal as refusal:
            self._server.refused(connection, str(refusal), refusal.api_key)
            connection.close()

    def refused(self, connection: Connection, reason: str) -> None:
        self._server.refused(connection, reason)

    def closed(self, connection: Connection) -> None:
        if connection.session.authenticator is not None:
            connection.session.authenticator.forget()
        self.connections.discard(connection)
        self._server.closed(connection)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Settings have changed; a listener without TLS has none of its own."""

    def close(self) -> None:
        for acceptor in self.acceptors:
            acceptor.close()
        for connection in list(self.connections):
            connection.close()


class Server:
    def __init__(self, config: BrokerConfig, dispatcher: Dispatcher, authentication: Authentication) -> None:
        self.dispatcher = dispatcher
        self.authentication = authentication
        dispatcher.refused = self.refused
        self._config = config
        self._frame_bytes_max: int = config["socket.request.max.bytes"]
        self._idle_seconds: float = config["connections.max.idle.ms"] / 1000
        self.limits = ConnectionLimits(config, self._begin)
        self._backlog: int = config["socket.listen.backlog.size"]
        self._socket_buffers = _socket_buffers(config)
        self._endpoints: dict[str, Endpoint] = {}
        # Whether listeners answer as soon as they are bound.
        self._is_serving = False
        self._changing_listeners: asyncio.Task[None] | None = None
        self._connections: set[Connection] = set()
        self._logged: set[tuple[str, int | None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self.refusals = 0
        self.failed_handshakes = 0
        self.accepted = 0

    async def bind(self, listener: Listener) -> int:
        """Bind the listener's port without answering yet; returns the port, which can be a free one."""
        self.authentication.open(listener)
        loop = asyncio.get_running_loop()
        endpoint, connect = self._endpoint(listener, loop)
        port = listener.port
        for host in _bind_hosts(listener.host):
            acceptor = Acceptor(loop, lambda plain: connect().begin(plain))
            try:
                await acceptor.bind(host, port, self._socket_buffers)
            except OSError as error:
                if host == "::1":
                    # "localhost" is served on IPv6 too if the machine has IPv6.
                    continue
                raise OSError(error.errno, why_not_bound(listener.host, port, error)) from error
            endpoint.acceptors.append(acceptor)
            port = acceptor.port
        self._endpoints[listener.name] = endpoint
        return port

    def _endpoint(
        self, listener: Listener, loop: asyncio.AbstractEventLoop
    ) -> tuple[Endpoint, Callable[[], Connection]]:
        """A new endpoint, and what makes its connections."""
        if not listener.uses_tls:
            plain = Endpoint(listener, self)
            return plain, lambda: Connection(plain, loop, self._frame_bytes_max)
        # Imported here: a broker without TLS starts faster without it.
        from barnabas.broker.tls_endpoint import TlsEndpoint

        endpoint = TlsEndpoint(listener, self, self._config, loop)
        return endpoint, lambda: endpoint.connect(self._frame_bytes_max)

    async def serve(self) -> None:
        self._is_serving = True
        for endpoint in self._endpoints.values():
            endpoint.start(self._backlog)
        self._sweep()

    async def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._changing_listeners is not None:
            self._changing_listeners.cancel()
            await asyncio.gather(self._changing_listeners, return_exceptions=True)
        for endpoint in self._endpoints.values():
            endpoint.close()

    def listen_on(self, listeners: Sequence[Listener]) -> asyncio.Task[None]:
        """Open the listeners that are new and close those that are gone; the others stay as they are."""
        previous = self._changing_listeners
        self._changing_listeners = asyncio.get_running_loop().create_task(
            self._change_listeners(listeners, previous)
        )
        return self._changing_listeners

    async def _change_listeners(
        self, listeners: Sequence[Listener], previous: asyncio.Task[None] | None
    ) -> None:
        if previous is not None:
            # The changes run in order, also after one that failed.
            await asyncio.wait([previous])
        names = {listener.name for listener in listeners}
        for name in self._endpoints.keys() - names:
            self._endpoints.pop(name).close()
        for listener in listeners:
            if listener.name in self._endpoints:
                continue
            try:
                await self.bind(listener)
            except (OSError, ConfigError, TlsError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                logger.error("the listener %s stays closed: %s", listener.name, reason)
                continue
            if self._is_serving:
                self._endpoints[listener.name].start(self._backlog)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Take limits that were changed while running. If there are more connections than max.connections
        allows, those that were quiet for the longest time are closed, as in Kafka."""
        self._config = config
        self.limits.set_limits(config)
        self._close_excess()

    def reconfigure_tls(self, config: BrokerConfig) -> None:
        """New connections get the certificates of the new settings."""
        self._config = config
        for endpoint in self._endpoints.values():
            endpoint.reconfigure(config)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    # ---- called by the endpoints

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)
        self.accepted += 1
        reason = self.limits.opened(connection)
        if reason is not None:
            self.refused(connection, reason)
            connection.close()

    def _begin(self, connection: Connection) -> None:
        endpoint = self._endpoints.get(connection.session.listener.name)
        if endpoint is None:
            connection.close()
        else:
            endpoint.begin(connection)
            self._close_excess()

    def _close_excess(self) -> None:
        while (excess := self.limits.excess) is not None:
            excess.close()

    def closed(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self.limits.closed(connection)

    def refused(self, connection: Connection, reason: str, api_key: int | None = None) -> None:
        """Count what the peer did wrong; log it once for each host and API key (None: no request)."""
        self.refusals += 1
        if api_key is not None and not 0 <= api_key < API_KEYS_MAX:
            api_key = API_KEYS_MAX
        if self._is_first((connection.peer_host, api_key)):
            logger.warning(
                "closed a connection from %s: %s (logged once per host and API key)",
                connection.peer_host,
                reason,
            )

    def handshake_failed(self, connection: Connection, reason: str) -> None:
        """Count a peer that did not get through the TLS handshake; log it once for each host."""
        self.failed_handshakes += 1
        if self._is_first((connection.peer_host, HANDSHAKE)):
            logger.warning(
                "closed a connection from %s to the listener %s: %s (logged once per host)",
                connection.peer_host,
                connection.session.listener.name,
                reason,
            )

    def _is_first(self, refusal: tuple[str, int | None]) -> bool:
        """Whether this has not been logged yet."""
        if refusal in self._logged:
            return False
        if len(self._logged) >= LOGGED_MAX:
            self._logged.clear()
        self._logged.add(refusal)
        return True

    def _sweep(self) -> None:
        """Close idle connections and shrink the buffers of quiet ones, again and again."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self._connections):
            quiet = now - connection.last_active
            if self._idle_seconds > 0 and quiet > self._idle_seconds:
                connection.close()
            elif quiet > SHRINK_SECONDS:
                connection.shrink()
        pause = (
            min(SWEEP_SECONDS_MAX, self._idle_seconds / 2) if self._idle_seconds > 0 else SWEEP_SECONDS_MAX
        )
        self._sweeper = loop.call_later(pause, self._sweep)


def _bind_hosts(host: str) -> list[str]:
    if host == LOCALHOST:
        return ["127.0.0.1", "::1"] if socket.has_ipv6 else ["127.0.0.1"]
    return [host or "0.0.0.0"]


def _socket_buffers(config: BrokerConfig) -> list[tuple[int, int]]:
    """The send buffer always gets the configured size: Kafka's 100 KB stay in the processor's cache, the
    megabytes that the system would use do not, and thousands of clients that do not read leave memory for the
    others. The receive buffer gets one only if it is configured: the system's own sizing is faster there."""
    keys = [(socket.SO_SNDBUF, "socket.send.buffer.bytes")]
    if config.source("socket.receive.buffer.bytes") is not Source.DEFAULT:
        keys.append((socket.SO_RCVBUF, "socket.receive.buffer.bytes"))
    return [(option, config[key]) for option, key in keys if config[key] > 0]
