"""SASL: how the peer of a connection shows who it is.

Until its peer is authenticated, a connection belongs to an Authenticator instead of the endpoint of its
listener: no frame reaches the dispatcher or a short way before, and this file decides what may be sent.

    ApiVersions (optional), SaslHandshake v1, SaslAuthenticate..., then all other requests
    ApiVersions (optional), SaslHandshake v0, the messages of the mechanism as frames..., then all others

A session can have an end (KIP-368). The client has to authenticate again before it: with the same mechanism,
as the same user, at most once per second. After the end only that is possible; any other request closes the
connection.

As in Kafka, a failed authentication is answered after connection.failed.authentication.delay.ms, and then the
connection is closed. Unlike Kafka, an exchange must end within ten seconds, and requests of other APIs are
not decoded: they close the connection."""

from __future__ import annotations

import asyncio
import logging
import struct
import time
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.call import SHORT_ELEMENTS_MAX, Call
from barnabas.broker.handlers.api_versions import api_versions, unsupported_version
from barnabas.errors import ErrorCode
from barnabas.net.chunks import Chunk
from barnabas.net.connection import FRAME_BYTES_MIN, Connection, ConnectionOwner
from barnabas.security.principal import USER, Principal
from barnabas.security.sasl.server import (
    SaslRefused,
    ServerExchange,
)
from barnabas.wire.codec import (
    Reader,
    RequestHeader,
    WireError,
    decode_request_body,
    decode_request_header,
    encode_response,
)
from barnabas.wire.message import Message
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from barnabas.broker.authentication import Authentication
    from barnabas.broker.sasl_settings import SaslSettings
    from barnabas.broker.session import Session

logger = logging.getLogger(__name__)

HANDSHAKE, API_VERSIONS, AUTHENTICATE = 17, 18, 36
# A whole exchange, from the connection or the new handshake to its end.
EXCHANGE_SECONDS_MAX = 10.0
# Between the beginnings of two authentications of one connection.
REAUTHENTICATION_SECONDS_MIN = 1.0
# From this version of SaslHandshake on, tokens come in SaslAuthenticate requests.
SASL_AUTHENTICATE_VERSION_MIN = 1

_SIZE = struct.Struct(">i")


class State(Enum):
    VERSIONS_OR_HANDSHAKE = auto()
    HANDSHAKE = auto()
    TOKENS = auto()
    # Tokens without a request around them.
    PLAIN_TOKENS = auto()
    # Authenticated again, but with another mechanism: the next frame closes the connection.
    OTHER_MECHANISM = auto()
    AUTHENTICATED = auto()
    # The session is over, and only a handshake may come.
    EXPIRED = auto()
    FAILED = auto()


class Authenticator:
    """Owns a connection while its peer has to show who it is, at first or again."""

    keys_answered_first: frozenset[int] = frozenset()

    def __init__(
        self,
        authentication: Authentication,
        settings: SaslSettings,
        connection: Connection,
        endpoint: ConnectionOwner,
    ) -> None:
        self._authentication = authentication
        self._settings = settings
        self._connection = connection
        self._endpoint = endpoint
        self._loop = asyncio.get_running_loop()
        self._state = State.VERSIONS_OR_HANDSHAKE
        self._mechanism: str | None = None
        self._exchange: ServerExchange | None = None
        self._frame_bytes = (FRAME_BYTES_MIN, connection.frame_bytes_max)
        self._timer: asyncio.TimerHandle | None = None
        self._slow: asyncio.Task[None] | None = None
        self._began_again = 0.0

    @property
    def _session(self) -> Session:
        return cast("Session", self._connection.session)

    @property
    def _is_again(self) -> bool:
        return self._session.is_authenticated

    # ---- the owner of a connection

    def opened(self, connection: Connection) -> None:
        """The endpoint had this call already."""

    def answer_first(self, connection: Connection, arrived: memoryview) -> tuple[int, bytes]:
        return 0, b""

    def refused(self, connection: Connection, reason: str) -> None:
        self._authentication.failed(connection, reason)
        self._endpoint.refused(connection, reason)

    def closed(self, connection: Connection) -> None:
        self._endpoint.closed(connection)

    def forget(self) -> None:
        """The connection is closed: a timer would keep it in memory, for as long as a session lasts."""
        self._stop_waiting()
        if self._slow is not None:
            self._slow.cancel()

    def frame(self, connection: Connection, frame: memoryview) -> None:
        started = time.perf_counter_ns()
        try:
            if self._state is State.PLAIN_TOKENS:
                self._take_token(bytes(frame), None)
            elif self._state is State.EXPIRED and not _is_handshake(frame):
                self._authentication.expired += 1
                connection.close()
            elif self._state in (State.OTHER_MECHANISM, State.FAILED):
                self._fail("re-authentication with another mechanism")
            else:
                self._request(frame)
        except WireError as error:
            self._fail(str(error))
        except Exception:
            self._failed_by_defect()
        traffic = self._authentication.broker.dispatcher.traffic
        traffic[AUTHENTICATE].record(1, time.perf_counter_ns() - started)

    # ---- the course of an authentication

    def guard(self) -> None:
        """Let no frame of a new connection pass."""
        self._session.is_authenticated = False
        self._session.authenticator = self
        self._own_frames()

    def begin(self) -> None:
        """The peer's time begins, and its frames are taken."""
        self._wait(EXCHANGE_SECONDS_MAX, self._too_late)

    def begin_again(self, call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse | None:
        """A handshake on an authenticated connection; None if it may not authenticate again now."""
        now = self._loop.time()
        if self._session.ends is None or now - self._began_again < REAUTHENTICATION_SECONDS_MIN:
            return None
        self._began_again = now
        self._take_over()
        return self._handshake_answer(call.header, request)

    def _take_over(self) -> None:
        """The peer authenticates again: from now on all frames come here."""
        self._own_frames()
        self._wait(EXCHANGE_SECONDS_MAX, self._too_late)

    def _own_frames(self) -> None:
        self._connection.hand_over(self)
        high = min(self._settings.receive_bytes_max, self._frame_bytes[1])
        self._connection.limit_frames(FRAME_BYTES_MIN, high)

    def _wait(self, seconds: float, then: Any, *arguments: Any) -> None:
        """One timer at a time: for the end of the exchange, of the delay or of the session."""
        self._stop_waiting()
        self._timer = self._loop.call_later(seconds, then, *arguments)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        self._authentication.failed(self._connection, f"it took more than {EXCHANGE_SECONDS_MAX:g} s")
        self._connection.close()

    def _request(self, frame: memoryview) -> None:
        header, reader = decode_request_header(frame, SHORT_ELEMENTS_MAX)
        if self._state is State.TOKENS:
            self._token_request(header, reader)
        elif header.api_key == HANDSHAKE and header.api_version <= 1:
            self._handshake_request(header, decode_request_body(header, reader))
        elif header.api_key == API_VERSIONS and self._state is State.VERSIONS_OR_HANDSHAKE:
            self._versions_request(header, reader)
        else:
            self._fail(f"a request of API {header.api_key} during the SASL handshake")

    def _versions_request(self, header: RequestHeader, reader: Reader) -> None:
        broker = self._authentication.broker
        low, high = broker.rows[API_VERSIONS].versions
        if not low <= header.api_version <= high:
            self._reply(header._replace(api_version=0), unsupported_version(broker.rows))
            return
        call = Call(broker, self._connection, self._session, header)
        answer = api_versions(call, decode_request_body(header, reader))
        if not answer.error_code:
            self._state = State.HANDSHAKE
        self._reply(header, answer)

    def _handshake_request(self, header: RequestHeader, request: SaslHandshakeRequest) -> None:
        if self._state is State.EXPIRED:
            self._take_over()
        answer = self._handshake_answer(header, request)
        if answer.error_code:
            self._fail("the client asked for a mechanism that is not enabled", header, answer)
        else:
            self._reply(header, answer)

    def _handshake_answer(
        self, header: RequestHeader, request: SaslHandshakeRequest
    ) -> SaslHandshakeResponse:
        mechanisms = list(self._settings.mechanisms)
        name = request.mechanism
        if name not in mechanisms:
            self._state = State.OTHER_MECHANISM
            return SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=mechanisms
            )
        if self._is_again and name != self._mechanism:
            self._state = State.OTHER_MECHANISM
        elif header.api_version >= SASL_AUTHENTICATE_VERSION_MIN:
            self._state = State.TOKENS
        else:
            self._state = State.PLAIN_TOKENS
            self._connection.limit_frames(0, self._settings.receive_bytes_max)
        self._mechanism = name if not self._is_again else self._mechanism
        self._exchange = self._authentication.exchange(self._settings, name)
        return SaslHandshakeResponse(mechanisms=mechanisms)

    def _token_request(self, header: RequestHeader, reader: Reader) -> None:
        if header.api_key == AUTHENTICATE and header.api_version <= 2:
            request: SaslAuthenticateRequest = decode_request_body(header, reader)
            self._take_token(bytes(request.auth_bytes), header)
            return
        answer: Message | None = None
        if header.api_key == HANDSHAKE and header.api_version <= 1:
            answer = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
        elif header.api_key == API_VERSIONS and header.api_version <= 4:
            answer = ApiVersionsResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
        self._fail(f"a request of API {header.api_key} during SASL authentication", header, answer)

    def _take_token(self, token: bytes, header: RequestHeader | None) -> None:
        """Without a header the token is a frame of its own."""
        assert self._exchange is not None
        preparation = self._exchange.preparation(token)
        if preparation is None:
            self._evaluate(token, header)
            return

        async def prepare() -> None:
            try:
                async with self._authentication.slow_exchanges:
                    await asyncio.to_thread(preparation)
                if not self._connection.is_closed:
                    self._evaluate(token, header)
            except Exception:
                self._failed_by_defect()

        self._slow = self._loop.create_task(prepare())

    def _evaluate(self, token: bytes, header: RequestHeader | None) -> None:
        assert self._exchange is not None
        try:
            answer = self._exchange.answer(token)
            if self._exchange.is_complete:
                self._check_same_user(self._exchange)
        except SaslRefused as refused:
            self._refuse(header, refused)
            return
        lifetime_ms = self._complete(self._exchange) if self._exchange.is_complete else 0
        if header is None:
            self._connection.reply([_SIZE.pack(len(answer)) + answer])
        else:
            self._reply(header, SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=lifetime_ms))

    def _check_same_user(self, exchange: ServerExchange) -> None:
        before, now = self._session.principal, Principal(USER, exchange.user)
        if self._is_again and before != now:
            text = (
                f"Cannot change principals during re-authentication from {before.type}.{before.name}: "
                f"{now.type}.{now.name}"
            )
            raise SaslRefused(text, text)

    def _complete(self, exchange: ServerExchange) -> int:
        """The peer is authenticated: give the connection to its endpoint. The milliseconds until the end of
        the session, or 0."""
        self._stop_waiting()
        session = self._session
        if self._is_again:
            self._authentication.repetitions += 1
        else:
            self._authentication.successes += 1
        session.principal = Principal(USER, exchange.user)
        session.is_token = exchange.is_token
        session.is_authenticated = True
        self._state = State.AUTHENTICATED
        self._exchange = None
        lifetime_ms = self._lifetime_ms(exchange)
        session.ends = None
        if lifetime_ms is not None:
            session.ends = self._loop.time() + lifetime_ms / 1000
            self._wait(lifetime_ms / 1000, self._expire)
        self._connection.limit_frames(*self._frame_bytes)
        self._connection.hand_over(self._endpoint)
        return lifetime_ms or 0

    def _lifetime_ms(self, exchange: ServerExchange) -> int | None:
        """None is without end: neither the settings nor the credential have one."""
        limits = []
        session_ms = self._settings.session_ms.get(self._mechanism or "", 0)
        if session_ms > 0:
            limits.append(session_ms)
        if exchange.ends_ms is not None:
            limits.append(exchange.ends_ms - self._authentication.broker.clock.now_ms())
        return max(0, min(limits)) if limits else None

    def _expire(self) -> None:
        """The session is over. Requests that came before are answered."""
        self._timer = None
        if not self._connection.is_closed:
            self._state = State.EXPIRED
            self._connection.hand_over(self)

    # ---- failures

    def _refuse(self, header: RequestHeader | None, refused: SaslRefused) -> None:
        which = "re-authentication" if self._is_again else "authentication"
        text = refused.answer or (
            f"Authentication failed during {which} due to invalid credentials "
            f"with SASL mechanism {self._mechanism}"
        )
        answer = None
        if header is not None:
            answer = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=text
            )
        self._fail(f"{self._mechanism}: {refused}", header, answer)

    def _fail(self, reason: str, header: RequestHeader | None = None, answer: Message | None = None) -> None:
        """After a pause, answer if there is something to say, and close the connection. The frame is in hand
        until then, so no other one is taken."""
        if self._state is not State.FAILED:
            self._authentication.failed(self._connection, reason)
        self._state = State.FAILED
        self._exchange = None
        chunks = None if header is None or answer is None else _encoded(header, answer)
        self._wait(self._settings.failure_delay_seconds, self._close, chunks)

    def _failed_by_defect(self) -> None:
        self._authentication.broker.dispatcher.failures += 1
        logger.exception("authentication from %s failed by a defect", self._connection.peer_host)
        self._connection.close()

    def _close(self, chunks: list[Chunk] | None) -> None:
        if chunks is not None:
            self._connection.reply(chunks)
        self._connection.close()

    def _reply(self, header: RequestHeader, answer: Message) -> None:
        self._connection.reply(_encoded(header, answer))


def _encoded(header: RequestHeader, answer: Message) -> list[Chunk]:
    return cast(
        list[Chunk], encode_response(header.api_key, header.api_version, header.correlation_id, answer)
    )


def _is_handshake(frame: memoryview) -> bool:
    return frame[0] == 0 and frame[1] == HANDSHAKE
