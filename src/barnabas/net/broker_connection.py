"""One connection to one broker: requests are sent at once, answers are matched in order.

On opening, ApiVersions determines the version of every API: the highest that both sides support. If the
broker does not support our newest ApiVersions, we ask again in a version that it supports. An answer that
cannot be decoded closes the connection; all waiting callers get a DisconnectedError that says why.

With `security` in its settings, a connection is encrypted (TLS) before ApiVersions and authenticated (SASL)
after it. If the broker limits the life of a session, the connection authenticates again in time. Requests
that are made meanwhile are held back, because brokers take no others during the exchange.

Each answer has its own memory, so slices of its records stay valid. Only for the event loop."""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from barnabas.errors import (
    DisconnectedError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
)
from barnabas.net.agreeing import VersionRange, agree, common_versions
from barnabas.net.frame_reader import FrameReader
from barnabas.net.pending import PendingRequest, WhenAnswered, are_in_a_row
from barnabas.net.refusals import why_not_connected
from barnabas.net.tls_failures import tls_failure
from barnabas.wire.apis import API_VERSIONS_KEY, api_of
from barnabas.wire.codec import RequestHeader, WireError, encode_request
from barnabas.wire.message import Message
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from barnabas.net.authenticating import Authentication
    from barnabas.security.client_security import ClientSecurity
    from barnabas.security.logins import Login

SOFTWARE_NAME = "barnabas-python"
SOFTWARE_VERSION = "0.1.0"
CORRELATION_ID_MAX = 2**31 - 1
# ApiVersions, perhaps in a second version, and the first request after it.
FIRST_REQUESTS = 3
NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """What connections need to know of the configuration of their owner, a client or a broker. A buffer size
    of -1 means the size that the system chooses, an idle time of -1 means that they are never closed."""

    client_id: str | None = None
    software_name: str = SOFTWARE_NAME
    request_seconds: float = 30.0
    idle_seconds: float = -1.0
    connect_seconds: float = 10.0
    connect_seconds_max: float = 30.0
    reconnect_pause_seconds: float = 0.05
    reconnect_pause_seconds_max: float = 1.0
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    security: "ClientSecurity | None" = None
    """TLS and SASL; None for PLAINTEXT."""


class BrokerConnection(FrameReader):
    """`await BrokerConnection.open(host, port, settings)`. Once `is_closed`, it cannot be opened again."""

    def __init__(self, host: str, port: int, settings: ConnectionSettings) -> None:
        super().__init__()
        self.host = host
        self.port = port
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self.client_id = settings.client_id
        self._request_seconds = settings.request_seconds
        self._idle_seconds = settings.idle_seconds
        self._pending: deque[PendingRequest] = deque()
        self._correlation_id = 0
        self._transport: asyncio.Transport | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._loss: Exception | None = None
        # Where new requests are written and noted: the transport and `_pending`, except while the connection
        # authenticates again (net/authenticating.py).
        self._output: Callable[[bytes | bytearray | memoryview], object] = _not_connected
        self._entering = self._pending
        self._authentication: Authentication | None = None
        self.last_active = self._loop.time()
        # Up to then the broker answers nothing: the client has used more than its quota.
        self._throttled_until = NEVER
        self._corked: list[bytes | bytearray | memoryview] | None = None
        self.is_closed = False
        # While the answers that arrived together are handled; `when_read` is called after the last of them.
        self.is_reading = False
        self.when_read: Callable[[], None] | None = None
        self.when_closed: Callable[[BrokerConnection], None] | None = None
        self.versions: dict[int, VersionRange] = {}
        self.finalized_features: dict[str, int] = {}
        self.api_versions = ApiVersionsResponse()

    @classmethod
    async def open(
        cls, host: str, port: int, settings: ConnectionSettings, connect_seconds: float | None = None
    ) -> "BrokerConnection":
        """Connect and agree on versions; DisconnectedError if that is not possible."""
        if connect_seconds is None:
            connect_seconds = settings.connect_seconds
        connection = cls(host, port, settings)
        try:
            async with asyncio.timeout(connect_seconds):
                await connection._connect()
        except TimeoutError:
            text = f"cannot connect to {host}:{port} within {connect_seconds:g} s"
            raise DisconnectedError(text) from None
        except ssl.SSLError as error:
            raise tls_failure(f"{host}:{port}", error) from error
        except (OSError, UnicodeError) as error:
            raise DisconnectedError(why_not_connected(host, port, error)) from error
        try:
            await connection._agree_on_versions()
            if settings.security is not None and settings.security.login is not None:
                await connection._authenticate(settings.security.login)
        except BaseException as error:
            connection.close("client and broker did not agree on versions or on who the client is")
            if isinstance(error, DisconnectedError):
                raise connection._explained(error) from error
            raise
        return connection

    async def _connect(self) -> None:
        security = self._settings.security
        if security is None or security.tls is None:
            await self._loop.create_connection(lambda: self, self.host, self.port)
            return
        await self._loop.create_connection(
            lambda: self, self.host, self.port, ssl=security.tls.context(), server_hostname=self.host
        )

    def _explained(self, error: DisconnectedError) -> KafkaError:
        """A broker that refuses our certificate (TLS 1.3) does so after the handshake. One that wants TLS
        closes a connection without it, and says nothing."""
        place = f"{self.host}:{self.port}"
        if isinstance(self._loss, ssl.SSLError):
            return tls_failure(place, self._loss)
        if self.api_versions.api_keys:
            return error
        security = self._settings.security
        if security is None:
            hint = "if its listener wants TLS or SASL, set security.protocol"
        elif security.tls is None:
            hint = "if its listener wants TLS, set security.protocol=SASL_SSL"
        else:
            hint = "if it does not accept the certificate of this client, its log says so"
        return DisconnectedError(f"{error.message}; {hint}")

    def __repr__(self) -> str:
        return f"<connection to {self.host}:{self.port}, {'closed' if self.is_closed else 'open'}>"

    # ---- for the owner

    async def send(
        self, api_key: int, message: Message, *, version_max: int | None = None, within: float | None = None
    ) -> Any:
        """Send a request and return its answer. If it takes longer than `within` seconds (request.timeout.ms
        by default), the connection is closed and KafkaTimeoutError raised. Cancelling leaves it open."""
        seconds = self._request_seconds if within is None else within
        return await self._answer_to(self.request(api_key, message, version_max=version_max), seconds)

    async def _answer_to(self, future: asyncio.Future[Any], seconds: float) -> Any:
        timer = self._loop.call_later(seconds, self._give_up, future, seconds)
        try:
            # Cancelling the caller cancels the future; the answer is dropped when it comes.
            return await future
        finally:
            timer.cancel()
            # An error has this frame in its traceback: the two would keep each other, and the connection.
            del future

    def _give_up(self, future: asyncio.Future[Any], seconds: float) -> None:
        """As in Kafka: a broker that does not answer one request will not answer the following ones
        either."""
        if future.done():
            return
        left = self.seconds_left(NEVER, seconds)
        if left > 0:
            self._loop.call_later(left, self._give_up, future, seconds)
            return
        text = f"got no answer from {self.host}:{self.port} within {seconds:g} s"
        future.set_exception(KafkaTimeoutError(text))
        self.close(f"no answer within {seconds:g} s")

    def seconds_left(self, sent_at: float, seconds: float) -> float:
        """How long a request that was sent then may still wait for its answer. A broker that throttles this
        client answers nothing meanwhile: the time begins after that."""
        return max(sent_at, self._throttled_until) + seconds - self._loop.time()

    def request(
        self, api_key: int, message: Message, *, version_max: int | None = None
    ) -> asyncio.Future[Any]:
        """Write a request and return the future of its answer, for several requests in flight. The message is
        encoded before this returns, so its buffers may change afterwards. The caller sets a timeout."""
        version = self.version_of(api_key, version_max=version_max)
        correlation_id = self._write(api_key, version, message)
        future: asyncio.Future[Any] = self._loop.create_future()
        self._entering.append(PendingRequest(correlation_id, api_key, version, future))
        return future

    def ask(
        self,
        api_key: int,
        message: Message,
        when_answered: Callable[[Any], None],
        *,
        version_max: int | None = None,
    ) -> None:
        """As request, but `when_answered` is called with the answer as soon as it is here, without a turn of
        the loop in between, or in a later turn with the DisconnectedError. It must not raise."""
        version = self.version_of(api_key, version_max=version_max)
        correlation_id = self._write(api_key, version, message)
        self._entering.append(PendingRequest(correlation_id, api_key, version, None, callback=when_answered))

    def cork(self) -> None:
        """Collect the requests that follow, until `uncork` sends all of them with one system call. Their
        buffers must not change before that: they are copied once, all together."""
        if self._entering is self._pending and not self.is_closed:
            self._corked = []
            self._output = self._corked.append

    def uncork(self) -> None:
        chunks, self._corked = self._corked, None
        if chunks is not None and self._transport is not None and not self.is_closed:
            self._output = self._transport.write
            if chunks:
                self._output(memoryview(b"".join(chunks)))

    def exchange(
        self, api_key: int, write: Callable[[int], bytes | bytearray], when_answered: WhenAnswered
    ) -> None:
        """Send the frame that `write` returns for a correlation id. `when_answered` is called as soon as the
        answer is here, without a turn of the loop in between. The caller sets a timeout."""
        if self.is_closed or self._transport is None:
            raise DisconnectedError(f"the connection to {self.host}:{self.port} is closed")
        correlation_id = self._next_correlation_id()
        self._output(write(correlation_id))
        self.last_active = self._loop.time()
        self._entering.append(PendingRequest(correlation_id, api_key, 0, None, when_answered))

    def send_no_reply(self, api_key: int, message: Message, *, version_max: int | None = None) -> None:
        """Write a request that the broker does not answer (Produce with acks=0)."""
        self._write(api_key, self.version_of(api_key, version_max=version_max), message)

    def supports(self, api_key: int, version: int = 0) -> bool:
        """Whether requests of this API can be sent in this version or a newer one."""
        agreed = self.versions.get(api_key)
        return agreed is not None and agreed.last >= version

    def version_of(self, api_key: int, *, version_max: int | None = None) -> int:
        """The version in which requests of this API are sent."""
        agreed = self.versions.get(api_key)
        if agreed is None or (version_max is not None and version_max < agreed.first):
            known = api_of(api_key)
            name = known.name if known is not None else f"API {api_key}"
            raise UnsupportedVersionError(
                f"{self.host}:{self.port} and this client have no common version of {name}"
            )
        return agreed.last if version_max is None else min(agreed.last, version_max)

    @property
    def pending(self) -> int:
        """How many requests wait for an answer, or to be sent."""
        held = 0 if self._entering is self._pending else len(self._entering)
        return len(self._pending) + held

    def close(self, reason: str = "the client closed it") -> None:
        """Close at once; callers that wait for an answer get DisconnectedError."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._authentication is not None:
            self._authentication.stop()
        if self._transport is not None:
            self._transport.abort()
        self.release_buffers()
        error_text = f"the connection to {self.host}:{self.port} was closed: {reason}"
        pending = [*self._pending, *(() if self._entering is self._pending else self._entering)]
        self._entering = self._pending = deque()
        for entry in pending:
            if entry.sink is not None:
                entry.sink(DisconnectedError(error_text))
            elif entry.callback is not None:
                self._loop.call_soon(entry.callback, DisconnectedError(error_text))
            elif entry.future is not None and not entry.future.done():
                entry.future.set_exception(DisconnectedError(error_text))
        if self.when_closed is not None:
            self.when_closed(self)

    # ---- for those who use the socket themselves (net/direct.py)

    @property
    def plain_socket(self) -> socket.socket | None:
        """The socket, if its bytes are those of the connection: TLS changes them."""
        if self._transport is None or self._transport.get_extra_info("sslcontext") is not None:
            return None
        return cast(socket.socket, self._transport.get_extra_info("socket"))

    def has_only(self, api_key: int, requests_max: int) -> bool:
        """Whether nothing is under way but at most so many requests of this API, with ids in a row: no bytes
        to be sent, no part of an answer, no requests that are held back."""
        transport, pending = self._transport, self._pending
        if self.is_closed or transport is None or transport.is_closing() or transport.get_write_buffer_size():
            return False
        if self._corked is not None or self._entering is not pending or not self.is_between_frames:
            return False
        return are_in_a_row(pending, api_key, self._correlation_id, requests_max)

    def next_id(self, count: int) -> int | None:
        """The correlation id of the next request; None if the ids of the next `count` are not in a row."""
        if self._correlation_id + count > CORRELATION_ID_MAX:
            return None
        return self._correlation_id + 1

    def exchanged(self, sent: int, answered: int, waiting: Sequence[PendingRequest], rest: bytes) -> None:
        """Note that so many requests were sent, and so many answers read, the oldest first. `waiting` are the
        last of these requests, those without an answer; `rest` is what must still be sent."""
        for _ in range(min(answered, len(self._pending))):
            self._pending.popleft()
        self._pending.extend(waiting)
        self._correlation_id += sent
        self.last_active = self._loop.time()
        if rest:
            self._output(rest)

    # ---- for the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._output = self._transport.write
        plain = transport.get_extra_info("socket")
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, size in (
            (socket.SO_SNDBUF, self._settings.send_buffer_bytes),
            (socket.SO_RCVBUF, self._settings.receive_buffer_bytes),
        ):
            if size >= 0:
                plain.setsockopt(socket.SOL_SOCKET, option, size)
        if self._idle_seconds >= 0:
            self._idle_timer = self._loop.call_later(self._idle_seconds, self._close_if_idle)

    def connection_lost(self, error: Exception | None) -> None:
        self._loss = error
        reason = "the broker closed it" if error is None else str(error)
        is_first = self._correlation_id <= FIRST_REQUESTS and bool(self.api_versions.api_keys)
        if self._settings.security is None and is_first and self._pending:
            # So a broker treats those who do not authenticate.
            reason += "; if its listener wants SASL, set security.protocol"
        self.close(reason)

    # ---- answers

    def buffer_updated(self, count: int) -> None:
        self.is_reading = True
        try:
            super().buffer_updated(count)
        finally:
            self.is_reading = False
        if self.when_read is not None:
            self.when_read()

    def frame_received(self, frame: bytes | bytearray) -> None:
        self.last_active = self._loop.time()
        if not self._pending:
            self.close("the broker sent an answer without a request")
            return
        entry = self._pending.popleft()
        try:
            if entry.sink is not None:
                entry.check(frame)
                entry.sink(frame)
                return
            message = entry.decode(frame)
        except (WireError, UnicodeDecodeError) as error:
            # Put back, so that close() sets its error like that of the others.
            self._pending.appendleft(entry)
            self.close(f"the answer to API {entry.api_key} cannot be decoded: {error}")
            return
        throttle_ms = getattr(message, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._throttled_until = self._loop.time() + throttle_ms / 1000
        if entry.callback is not None:
            entry.callback(message)
        # The caller may have been cancelled.
        elif entry.future is not None and not entry.future.done():
            entry.future.set_result(message)

    def framing_broken(self, reason: str) -> None:
        self.close(reason)

    # ---- authentication

    async def _authenticate(self, login: "Login") -> None:
        # Imported late: connections without SASL do not need it.
        from barnabas.net.authenticating import Authentication

        self._authentication = Authentication(self, login)
        await self._authentication.begin()

    async def ask_now(self, api_key: int, message: Message) -> Any:
        """Send a request of the authentication, also while others are held back."""
        held = self._output, self._entering
        if self._transport is not None:
            self._output, self._entering = self._transport.write, self._pending
        try:
            future = self.request(api_key, message)
        finally:
            self._output, self._entering = held
        return await self._answer_to(future, self._request_seconds)

    def hold(self) -> list[bytes]:
        """Keep new requests back, in the list that is returned, until `release`."""
        frames: list[bytes] = []
        self._output = lambda data: frames.append(bytes(data))
        self._entering = deque()
        return frames

    def release(self, frames: list[bytes]) -> None:
        """Send the requests that were held back."""
        if self.is_closed or self._transport is None:
            return
        self._output = self._transport.write
        for frame in frames:
            self._output(frame)
        self._pending.extend(self._entering)
        self._entering = self._pending

    @property
    def is_quiet(self) -> bool:
        """Whether the broker has answered all that was sent."""
        return not self._pending

    # ---- requests

    def _write(self, api_key: int, version: int, message: Message) -> int:
        if self.is_closed or self._transport is None:
            raise DisconnectedError(f"the connection to {self.host}:{self.port} is closed")
        correlation_id = self._next_correlation_id()
        header = RequestHeader(api_key, version, correlation_id, self.client_id)
        try:
            chunks = cast(list[bytes], encode_request(header, message))
        except WireError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
        # Join the chunks: two small writes would be two packets, and their buffers are free again. Write a
        # view, because a transport that cannot send everything at once slices off the part that was sent.
        if self._corked is None:
            self._output(memoryview(b"".join(chunks)))
        else:
            self._corked.extend(chunks)
        self.last_active = self._loop.time()
        return correlation_id

    def _next_correlation_id(self) -> int:
        self._correlation_id = (self._correlation_id + 1) & CORRELATION_ID_MAX
        return self._correlation_id

    async def _agree_on_versions(self) -> None:
        self.api_versions = response = await agree(self._ask_versions)
        self.finalized_features = {
            feature.name: feature.max_version_level for feature in response.finalized_features
        }
        self.versions = common_versions(response)

    async def _ask_versions(self, version: int) -> ApiVersionsResponse:
        self.versions = {API_VERSIONS_KEY: VersionRange(version, version)}
        request = ApiVersionsRequest(
            client_software_name=self._settings.software_name, client_software_version=SOFTWARE_VERSION
        )
        return cast(ApiVersionsResponse, await self.send(API_VERSIONS_KEY, request))

    def _close_if_idle(self) -> None:
        idle = self._loop.time() - self.last_active
        if idle >= self._idle_seconds and not self._pending:
            self.close("the connection was idle for longer than connections.max.idle.ms")
            return
        wait = max(self._idle_seconds - idle, 0.001) if not self._pending else self._idle_seconds
        self._idle_timer = self._loop.call_later(wait, self._close_if_idle)


def _not_connected(_: bytes | bytearray | memoryview) -> None:
    raise DisconnectedError("the connection is not open yet")
