"""The server's side of SCRAM: right and wrong proofs, unknown users, replayed and broken messages."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.security import scram
from barnabas.security.sasl.server import (
    PlainServerExchange,
    SaslRefused,
    ScramServerExchange,
    TokenCredential,
)
from barnabas.security.scram import ClientFinal, ClientFirst, ScramCredential, ScramMechanism, ServerFirst

MECHANISM = ScramMechanism.SHA_256
ALICE = scram.make_credential(MECHANISM, "secret", 8192)
TOKEN = scram.make_credential(MECHANISM, "hmac", 4096)
SECRET = b"secret of the broker"


class Credentials:
    def __init__(self) -> None:
        self.prepared: list[str] = []

    def of_user(self, user: str) -> ScramCredential | None:
        return ALICE if user == "alice" else None

    def preparation(self, token_id: str) -> Callable[[], object] | None:
        return lambda: self.prepared.append(token_id)

    def of_token(self, token_id: str) -> TokenCredential | None:
        return TokenCredential("carol", 1234, TOKEN) if token_id in self.prepared else None

    def usual_iterations(self) -> int:
        return 8192


def exchange() -> ScramServerExchange:
    return ScramServerExchange(MECHANISM, Credentials(), SECRET)


def final_message(first: ClientFirst, challenge: bytes, password: str, header: str = "n,,") -> bytes:
    server_first = ServerFirst.parse(challenge)
    salted = scram.salted_password(MECHANISM, password, server_first.salt, server_first.iterations)
    unsigned = ClientFinal.make(header, server_first.nonce)
    signed = scram.signed_text(first, server_first, unsigned)
    return bytes(ClientFinal.make(header, server_first.nonce, scram.client_proof(MECHANISM, salted, signed)))


def run(server: ScramServerExchange, user: str, password: str, **more: str) -> bytes:
    first = ClientFirst.make(user, scram.new_nonce(), more)
    prepare = server.preparation(bytes(first))
    if prepare is not None:
        prepare()
    return server.answer(final_message(first, server.answer(bytes(first)), password))


def test_the_right_password() -> None:
    server = exchange()
    assert run(server, "alice", "secret").startswith(b"v=")
    assert (server.is_complete, server.user, server.ends_ms, server.is_token) == (True, "alice", None, False)
    with pytest.raises(SaslRefused):
        server.answer(b"n,,n=alice,r=abc")


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "secret"), ("carol", "hmac")])
def test_the_wrong_password_and_unknown_users(user: str, password: str) -> None:
    server = exchange()
    with pytest.raises(SaslRefused) as refused:
        run(server, user, password)
    assert refused.value.answer is None
    assert not server.is_complete


def test_an_unknown_user_looks_like_a_known_one() -> None:
    def salt_and_iterations(user: str, secret: bytes = SECRET) -> tuple[bytes, int]:
        server = ScramServerExchange(MECHANISM, Credentials(), secret)
        answer = ServerFirst.parse(server.answer(bytes(ClientFirst.make(user, "abc"))))
        return answer.salt, answer.iterations

    alice, nobody = salt_and_iterations("alice"), salt_and_iterations("nobody")
    assert nobody == salt_and_iterations("nobody")
    assert nobody != salt_and_iterations("nobody else")
    assert nobody != salt_and_iterations("nobody", b"another secret")
    assert alice[1] == nobody[1]
    assert abs(len(alice[0]) - len(nobody[0])) <= 3
    assert alice[0].isalnum() and nobody[0].isalnum()


def test_a_delegation_token_is_its_owner() -> None:
    server = exchange()
    run(server, "token-id", "hmac", tokenauth="true")
    assert (server.is_complete, server.user, server.ends_ms, server.is_token) == (True, "carol", 1234, True)
    with pytest.raises(SaslRefused):
        run(exchange(), "alice", "secret", tokenauth="true")
    with pytest.raises(SaslRefused):
        run(exchange(), "token-id", "hmac", tokenauth="false")


def test_an_unknown_token_looks_like_a_known_one() -> None:
    def iterations(prepares: bool) -> int:
        server = exchange()
        first = bytes(ClientFirst.make("token-id", "abc", {"tokenauth": "true"}))
        prepare = server.preparation(first)
        if prepare is not None and prepares:
            prepare()
        return ServerFirst.parse(server.answer(first)).iterations

    assert iterations(True) == iterations(False)


def test_replayed_messages_are_refused() -> None:
    """The server's part of the nonce is new each time."""
    first = ClientFirst.make("alice", "always the same".replace(" ", "-"))
    server = exchange()
    final = final_message(first, server.answer(bytes(first)), "secret")
    server.answer(final)
    other = exchange()
    other.answer(bytes(first))
    with pytest.raises(SaslRefused, match="nonce"):
        other.answer(final)
    assert not other.is_complete
    with pytest.raises(SaslRefused):
        other.answer(final)


def test_a_changed_header_is_noticed() -> None:
    """Otherwise an attacker between both could take channel binding away."""
    first = ClientFirst.make("alice", "abc")
    server = exchange()
    challenge = server.answer(b"y" + bytes(first)[1:])
    with pytest.raises(SaslRefused, match="channel binding"):
        server.answer(final_message(first, challenge, "secret"))


def test_nobody_acts_for_somebody_else() -> None:
    with pytest.raises(SaslRefused) as refused:
        exchange().answer(b"n,a=bob,n=alice,r=abc")
    assert refused.value.answer is not None
    assert exchange().answer(b"n,a=alice,n=alice,r=abc").startswith(b"r=abc")


@given(st.lists(st.binary(max_size=100) | st.text("nyap=,cr2C3Ds+/i1 mv").map(str.encode), max_size=3))
def test_no_messages_cause_another_error(messages: list[bytes]) -> None:
    for server in (exchange(), PlainServerExchange({"alice": "secret"}, SECRET)):
        for message in messages:
            with contextlib.suppress(SaslRefused):
                server.preparation(message)
                server.answer(message)
        assert not server.is_complete


def test_a_user_of_plain_without_a_password_cannot_log_in() -> None:
    with pytest.raises(SaslRefused):
        PlainServerExchange({"alice": ""}, SECRET).answer(b"\0alice\0")
