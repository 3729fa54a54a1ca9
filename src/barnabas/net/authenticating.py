"""SASL on a connection to a broker: SaslHandshake, then SaslAuthenticate until the mechanism is satisfied.

What takes long (PBKDF2 of SCRAM, a token from an endpoint) runs in a thread. A refusal is an
AuthenticationError with the broker's words; a connection that is lost meanwhile is a DisconnectedError, which
is tried again."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

from barnabas.errors import AuthenticationError, ErrorCode, KafkaError, UnsupportedVersionError, error_of
from barnabas.net.tokens import obtain_token
from barnabas.security.logins import BearerLogin, Login
from barnabas.security.sasl.client import OAuthBearerExchange, SaslError, SaslExchange
from barnabas.wire.message import Message
from barnabas.wire.messages import sasl_authenticate, sasl_handshake

# Version 0 of SaslHandshake is followed by bytes without headers, which nobody needs any more.
HANDSHAKE_VERSION = 1
# More messages than any mechanism needs: a hostile broker could go on forever.
MESSAGES_MAX = 10
# As in Kafka: a client authenticates again when this share of the session's life is over, and all of them at
# other moments.
REPEAT_SHARE_MIN, REPEAT_SHARE_MAX = 0.85, 0.95
# Kafka's brokers refuse it within a second. Sessions without a length must not keep a client busy.
REPEAT_SECONDS_MIN = 1.0

# How often to look whether the requests in flight are answered.
QUIET_SECONDS_MIN, QUIET_SECONDS_MAX = 0.001, 0.1

_log = logging.getLogger(__name__)

# Sends one request and returns its answer.
Ask: TypeAlias = Callable[[int, Message], Awaitable[Any]]


class Connection(Protocol):
    """What an authentication needs of its connection."""

    host: str
    port: int
    is_closed: bool
    last_active: float

    async def ask_now(self, api_key: int, message: Message) -> Any: ...

    def hold(self) -> list[bytes]: ...

    def release(self, frames: list[bytes]) -> None: ...

    @property
    def is_quiet(self) -> bool: ...

    def close(self, reason: str) -> None: ...


class Authentication:
    """The authentication of one connection, and its repetition (KIP-368)."""

    def __init__(self, connection: Connection, login: Login) -> None:
        self._connection = connection
        self._login = login
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        connection = self._connection
        again = await authenticate(connection.ask_now, self._login, f"{connection.host}:{connection.port}")
        if again is not None and not connection.is_closed:
            self._timer = asyncio.get_running_loop().call_later(again, self._start)

    def stop(self) -> None:
        """The connection is closed. A running task ends by itself: it gets the error that all others get."""
        if self._timer is not None:
            self._timer.cancel()

    def _start(self) -> None:
        # At once, not when the task begins: what is sent meanwhile might arrive after the end of the session.
        held = self._connection.hold()
        self._task = asyncio.get_running_loop().create_task(self._repeat(held))

    async def _repeat(self, held: list[bytes]) -> None:
        connection = self._connection
        try:
            # A request in flight may take minutes (JoinGroup); the time limit of ours must begin after it.
            pause = QUIET_SECONDS_MIN
            while not connection.is_quiet:
                await asyncio.sleep(pause)
                pause = min(2 * pause, QUIET_SECONDS_MAX)
            last_active = connection.last_active
            await self.begin()
            if not held:
                # Authenticating is not activity: a connection that nobody uses is closed as if it had not.
                connection.last_active = last_active
        except KafkaError as error:
            # The next connection gets the same error, if it is not a passing one, and tells its owner.
            _log.warning("cannot authenticate again: %s", error)
            connection.close(f"it could not authenticate again: {error}")
        finally:
            connection.release(held)


async def authenticate(ask: Ask, login: Login, place: str) -> float | None:
    """Authenticate, and return after how many seconds to do so again; None means never."""
    mechanism = login.mechanism
    await _shake_hands(ask, mechanism, place)
    # Taking an exchange may fetch a token.
    exchange = await asyncio.to_thread(login.exchange, obtain_token)
    reply: bytes | None = exchange.first()
    answer = sasl_authenticate.SaslAuthenticateResponse()
    now = asyncio.get_running_loop().time
    asked = now()
    for _ in range(MESSAGES_MAX):
        if reply is None:
            break
        asked = now()
        answer = await ask(
            sasl_authenticate.API_KEY, sasl_authenticate.SaslAuthenticateRequest(auth_bytes=reply)
        )
        if answer.error_code:
            _refuse(answer, exchange, login, place)
        reply = await _next(exchange, bytes(answer.auth_bytes or b""), place)
    if reply is not None:
        raise AuthenticationError(f"{place} does not end the exchange of messages of {mechanism}.")
    if answer.session_lifetime_ms <= 0:
        return None
    share = random.uniform(REPEAT_SHARE_MIN, REPEAT_SHARE_MAX)
    # The session began when the broker answered, which may be long ago, but not before it was asked.
    age = now() - asked
    return max(answer.session_lifetime_ms / 1000 * share - age, REPEAT_SECONDS_MIN)


async def _shake_hands(ask: Ask, mechanism: str, place: str) -> None:
    try:
        answer: sasl_handshake.SaslHandshakeResponse = await ask(
            sasl_handshake.API_KEY, sasl_handshake.SaslHandshakeRequest(mechanism=mechanism)
        )
    except UnsupportedVersionError:
        raise AuthenticationError(
            f"{place} does not know SASL: check that security.protocol is that of the listener."
        ) from None
    code = error_of(answer.error_code)
    if code is ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(answer.mechanisms) or "none"
        raise AuthenticationError(
            f"{place} does not take the SASL mechanism {mechanism}; it takes {offered}.", code
        )
    if code is ErrorCode.ILLEGAL_SASL_STATE:
        raise AuthenticationError(
            f"{place} does not take SASL on this listener: check security.protocol.", code
        )
    if code is not ErrorCode.NONE:
        raise KafkaError(code)


async def _next(exchange: SaslExchange, challenge: bytes, place: str) -> bytes | None:
    try:
        if exchange.is_slow:
            return await asyncio.to_thread(exchange.answer, challenge)
        return exchange.answer(challenge)
    except SaslError as error:
        raise AuthenticationError(f"This client does not accept {place}: {error}.") from None


def _refuse(
    answer: sasl_authenticate.SaslAuthenticateResponse, exchange: SaslExchange, login: Login, place: str
) -> None:
    code = error_of(answer.error_code)
    if isinstance(login, BearerLogin):
        login.forget()
    said = answer.error_message or code.text
    if isinstance(exchange, OAuthBearerExchange) and exchange.refusal and exchange.refusal not in said:
        said = f"{said} ({exchange.refusal})"
    if code.retriable:
        raise KafkaError(code, said)
    raise AuthenticationError(
        f"{place} refused the authentication with {login.mechanism}: {said}",
        ErrorCode.SASL_AUTHENTICATION_FAILED,
    )
