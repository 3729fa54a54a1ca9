"""Whatever a hostile broker answers during the authentication, it ends soon, with a KafkaError or a
session."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import KafkaError
from barnabas.net.authenticating import MESSAGES_MAX, REPEAT_SECONDS_MIN, authenticate
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
