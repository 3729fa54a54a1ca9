"""Whatever a hostile broker answers during the authentication, it ends soon, with a KafkaError or a session;
and the client authenticates again in time."""

import asyncio
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import KafkaError
from barnabas.net.authenticating import (
    MESSAGES_MAX,
    REPEAT_SECONDS_MIN,
    REPEAT_SHARE_MAX,
    REPEAT_SHARE_MIN,
    Authentication,
    authenticate,
)
from barnabas.security.logins import BearerLogin, Login, PasswordLogin, TokenProvider
from barnabas.wire.message import Message
from barnabas.wire.messages import sasl_authenticate, sasl_handshake

CODES = st.sampled_from([0, 0, 0, -1, 33, 34, 35, 58, 7, 999])
SCRAM_LIKE = st.builds(
    lambda nonce, salt, iterations: f"r={nonce},s={salt},i={iterations}".encode(),
    st.text("abcXYZ", min_size=1),
    st.sampled_from(["", "c2FsdA==", "!"]),
    st.integers(-5, 10**12),
)
ANSWERS = st.builds(
    sasl_authenticate.SaslAuthenticateResponse,
    error_code=CODES,
    error_message=st.none() | st.text(max_size=2000),
    auth_bytes=st.binary(max_size=100) | SCRAM_LIKE | st.just(b'{"status": "no"}'),
    session_lifetime_ms=st.integers(-(2**63), 2**63 - 1),
)
HANDSHAKES = st.builds(
    sasl_handshake.SaslHandshakeResponse,
    error_code=CODES,
    mechanisms=st.lists(st.text(max_size=5), max_size=3),
)
LOGINS = st.sampled_from(
    [
        PasswordLogin("PLAIN", "alice", "s3cret-one"),
        PasswordLogin("SCRAM-SHA-256", "alice", "s3cret-one"),
        BearerLogin(TokenProvider(lambda: "s3cret-one")),
    ]
)


@given(LOGINS, HANDSHAKES, st.lists(ANSWERS, min_size=1, max_size=4))
def test_any_answers_end_in_a_session_or_an_error(
    login: Login,
    handshake: sasl_handshake.SaslHandshakeResponse,
    answers: list[sasl_authenticate.SaslAuthenticateResponse],
) -> None:
    sent = 0

    async def ask(api_key: int, message: Message) -> Any:
        nonlocal sent
        if api_key == sasl_handshake.API_KEY:
            return handshake
        sent += 1
        return answers[(sent - 1) % len(answers)]

    try:
        again = asyncio.run(authenticate(ask, login, "h:1"))
        assert again is None or again >= REPEAT_SECONDS_MIN
    except KafkaError as error:
        assert "s3cret-one" not in str(error)
    assert sent <= MESSAGES_MAX


def test_a_session_is_as_old_as_its_last_request() -> None:
    """The broker counts from its answer. A client that gets the answer late, or is slow to look at it, must
    not be late with its next authentication."""
    loop = asyncio.new_event_loop()
    late = 0.0
    clock = loop.time
    loop.time = lambda: clock() + late  # type: ignore[method-assign]

    async def ask(api_key: int, message: Message) -> Any:
        nonlocal late
        if api_key == sasl_handshake.API_KEY:
            late += 1000
            return sasl_handshake.SaslHandshakeResponse(mechanisms=["PLAIN"])
        late += 30
        return sasl_authenticate.SaslAuthenticateResponse(session_lifetime_ms=100_000)

    try:
        again = loop.run_until_complete(authenticate(ask, PasswordLogin("PLAIN", "alice", "secret"), "h:1"))
    finally:
        loop.close()
    assert again is not None and REPEAT_SHARE_MIN * 100 - 30 - 1 < again <= REPEAT_SHARE_MAX * 100 - 30


class HeldConnection:
    """A connection that is asked to keep requests back, and nothing else."""

    host, port = "h", 1
    is_closed = False
    last_active = 0.0
    is_quiet = False

    def __init__(self) -> None:
        self.holds = 0

    def hold(self) -> list[bytes]:
        self.holds += 1
        return []

    def release(self, frames: list[bytes]) -> None:
        pass

    def close(self, reason: str) -> None:
        pass

    async def ask_now(self, api_key: int, message: Message) -> Any:
        if api_key == sasl_handshake.API_KEY:
            return sasl_handshake.SaslHandshakeResponse(mechanisms=["PLAIN"])
        return sasl_authenticate.SaslAuthenticateResponse(session_lifetime_ms=1)


def test_requests_are_kept_back_in_the_turn_in_which_the_time_has_come() -> None:
    """Those of the next turn might reach the broker after the end of the session."""
    connection = HeldConnection()
    held_at_once: list[int] = []

    async def run() -> None:
        await Authentication(connection, PasswordLogin("PLAIN", "alice", "secret")).begin()
        loop = asyncio.get_running_loop()
        waiting = asyncio.Event()

        def look() -> None:
            # The timer of the session is the only other one, and due earlier.
            held_at_once.append(connection.holds)
            waiting.set()

        loop.call_later(REPEAT_SECONDS_MIN, look)
        loop.call_later(REPEAT_SECONDS_MIN / 2, time.sleep, REPEAT_SECONDS_MIN)
        await waiting.wait()

    asyncio.run(run())
    assert held_at_once == [1]
