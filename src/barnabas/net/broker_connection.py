"""One connection to one broker: requests are sent at once, answers are matched in order.

On opening, ApiVersions determines the version of every API: the highest that both sides support. If the
broker does not support our newest ApiVersions, we ask again in a version that it supports. An answer that
cannot be decoded closes the connection; all waiting callers get a DisconnectedError that says why.

Each answer has its own memory, so slices of its records stay valid. Only for the event loop."""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

from barnabas.errors import (
    DisconnectedError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
    error_of,
)
from barnabas.net.frame_reader import FrameReader
from barnabas.wire.apis import API_VERSIONS_KEY, api_of
from barnabas.wire.codec import RequestHeader, WireError, decode_response, encode_request
from barnabas.wire.message import Message
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SOFTWARE_NAME = "barnabas-python"
SOFTWARE_VERSION = "0.1.0"
CORRELATION_ID_MAX = 2**31 - 1

_CORRELATION_ID = struct.Struct(">i")
_ERROR_AFTER_CORRELATION_ID = struct.Struct(">xxxxh")


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


# Takes the frame of an answer, without its size, or the error that came instead.
WhenAnswered: TypeAlias = Callable[[bytes | bytearray | DisconnectedError], None]


class _Pending(NamedTuple):
    """A request without an answer: the answer goes to the future as a message, or to `sink` as it is."""

    correlation_id: int
    api_key: int
    version: int
    future: asyncio.Future[Any] | None
    sink: WhenAnswered | None = None


class VersionRange(NamedTuple):
    first: int
    last: int


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
        self._pending: deque[_Pending] = deque()
        self._correlation_id = 0
        self._transport: asyncio.Transport | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self.last_active = self._loop.time()
        self.is_closed = False
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
                await asyncio.get_running_loop().create_connection(lambda: connection, host, port)
        except TimeoutError:
            text = f"cannot connect to {host}:{port} within {connect_seconds:g} s"
            raise DisconnectedError(text) from None
        except (OSError, UnicodeError) as error:
            # UnicodeError: the name cannot even be encoded for a lookup.
            raise DisconnectedError(f"cannot connect to {host}:{port}: {error}") from error
        try:
            await connection._agree_on_versions()
        except BaseException:
            connection.close("client and broker did not agree on versions")
            raise
        return connection

    def __repr__(self) -> str:
        return f"<connection to {self.host}:{self.port}, {'closed' if self.is_closed else 'open'}>"

    # ---- for the owner

    async def send(
        self, api_key: int, message: Message, *, version_max: int | None = None, within: float | None = None
    ) -> Any:
        """Send a request and return its answer. If it takes longer than `within` seconds (request.timeout.ms
        by default), the connection is closed and KafkaTimeoutError raised. Cancelling leaves it open."""
        future = self.request(api_key, message, version_max=version_max)
        seconds = self._request_seconds if within is None else within
        timer = self._loop.call_later(seconds, self._give_up, future, seconds)
        try:
            # Cancelling the caller cancels the future; the answer is dropped when it comes.
            return await future
        finally:
            timer.cancel()

    def _give_up(self, future: asyncio.Future[Any], seconds: float) -> None:
        """As in Kafka: a broker that does not answer one request will not answer the following ones
        either."""
        if not future.done():
            text = f"got no answer from {self.host}:{self.port} within {seconds:g} s"
            future.set_exception(KafkaTimeoutError(text))
            self.close(f"no answer within {seconds:g} s")

    def request(
        self, api_key: int, message: Message, *, version_max: int | None = None
    ) -> asyncio.Future[Any]:
        """Write a request and return the future of its answer, for several requests in flight. The message is
        encoded before this returns, so its buffers may change afterwards. The caller sets a timeout."""
        version = self.version_of(api_key, version_max=version_max)
        correlation_id = self._write(api_key, version, message)
        future: asyncio.Future[Any] = self._loop.create_future()
        self._pending.append(_Pending(correlation_id, api_key, version, future))
        return future

    def exchange(
        self, api_key: int, write: Callable[[int], bytes | bytearray], when_answered: WhenAnswered
    ) -> None:
        """Send the frame that `write` returns for a correlation id. `when_answered` is called as soon as the
        answer is here, without a turn of the loop in between. The caller sets a timeout."""
        if self.is_closed or self._transport is None:
            raise DisconnectedError(f"the connection to {self.host}:{self.port} is closed")
        correlation_id = self._next_correlation_id()
        self._transport.write(write(correlation_id))
        self.last_active = self._loop.time()
        self._pending.append(_Pending(correlation_id, api_key, 0, None, when_answered))

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
        """How many requests wait for an answer."""
        return len(self._pending)

    def close(self, reason: str = "the client closed it") -> None:
        """Close at once; callers that wait for an answer get DisconnectedError."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        error_text = f"the connection to {self.host}:{self.port} was closed: {reason}"
        pending, self._pending = self._pending, deque()
        for entry in pending:
            if entry.sink is not None:
                entry.sink(DisconnectedError(error_text))
            elif entry.future is not None and not entry.future.done():
                entry.future.set_exception(DisconnectedError(error_text))
        if self.when_closed is not None:
            self.when_closed(self)

    # ---- for the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
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
        self.close("the broker closed it" if error is None else str(error))

    # ---- answers

    def frame_received(self, frame: bytes | bytearray) -> None:
        self.last_active = self._loop.time()
        if not self._pending:
            self.close("the broker sent an answer without a request")
            return
        entry = self._pending.popleft()
        try:
            if entry.sink is not None:
                _check_correlation_id(entry, _CORRELATION_ID.unpack_from(frame)[0])
                entry.sink(frame)
                return
            message = _decode(entry, frame)
        except (WireError, UnicodeDecodeError) as error:
            # Put back, so that close() sets its error like that of the others.
            self._pending.appendleft(entry)
            self.close(f"the answer to API {entry.api_key} cannot be decoded: {error}")
            return
        # The caller may have been cancelled.
        if entry.future is not None and not entry.future.done():
            entry.future.set_result(message)

    def framing_broken(self, reason: str) -> None:
        self.close(reason)

    # ---- requests

    def _write(self, api_key: int, version: int, message: Message) -> int:
        if self.is_closed or self._transport is None:
            raise DisconnectedError(f"the connection to {self.host}:{self.port} is closed")
        correlation_id = self._next_correlation_id()
        header = RequestHeader(api_key, version, correlation_id, self.client_id)
        try:
            chunks = encode_request(header, message)
        except WireError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
        # Join the chunks: two small writes would be two packets, and their buffers are free again. Write a
        # view, because a transport that cannot send everything at once slices off the part that was sent.
        self._transport.write(memoryview(b"".join(cast(list[bytes], chunks))))
        self.last_active = self._loop.time()
        return correlation_id

    def _next_correlation_id(self) -> int:
        self._correlation_id = (self._correlation_id + 1) & CORRELATION_ID_MAX
        return self._correlation_id

    async def _agree_on_versions(self) -> None:
        api = api_of(API_VERSIONS_KEY)
        assert api is not None
        response = await self._ask_versions(api.last)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            theirs = {entry.api_key: entry.max_version for entry in response.api_keys}
            response = await self._ask_versions(min(api.last, max(0, theirs.get(API_VERSIONS_KEY, 0))))
        _check_versions_error(response.error_code)
        self.api_versions = response
        self.finalized_features = {
            feature.name: feature.max_version_level for feature in response.finalized_features
        }
        self.versions = _common_versions(response)

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


def _decode(entry: _Pending, frame: bytes | bytearray) -> Any:
    version = entry.version
    if entry.api_key == API_VERSIONS_KEY and version > 0 and len(frame) >= 6:
        # A broker that does not support the version answers with an error in version 0.
        (error_code,) = _ERROR_AFTER_CORRELATION_ID.unpack_from(frame)
        version = 0 if error_code == ErrorCode.UNSUPPORTED_VERSION else version
    correlation_id, message = decode_response(entry.api_key, version, frame)
    _check_correlation_id(entry, correlation_id)
    return message


def _check_correlation_id(entry: _Pending, correlation_id: int) -> None:
    if correlation_id != entry.correlation_id:
        raise WireError(f"expected the answer to request {entry.correlation_id}, got {correlation_id}")


def _check_versions_error(number: int) -> None:
    if number == ErrorCode.UNSUPPORTED_VERSION:
        raise UnsupportedVersionError
    if number != ErrorCode.NONE:
        raise KafkaError(error_of(number))


def _common_versions(response: ApiVersionsResponse) -> dict[int, VersionRange]:
    common: dict[int, VersionRange] = {}
    for theirs in response.api_keys:
        ours = api_of(theirs.api_key)
        if ours is None:
            continue
        first, last = max(ours.first, theirs.min_version), min(ours.last, theirs.max_version)
        if first <= last:
            common[theirs.api_key] = VersionRange(first, last)
    return common
