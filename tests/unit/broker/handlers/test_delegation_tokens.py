"""Delegation tokens: created, renewed, expired, described, swept, and used to log in."""

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.raw_client import RawClient
from tests.support.visible_broker import VisibleBroker, visible_broker

from barnabas.errors import ErrorCode
from barnabas.security import scram
from barnabas.security.principal import Principal
from barnabas.security.scram import ClientFinal, ClientFirst, ScramMechanism, ServerFirst
from barnabas.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from barnabas.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
HOUR_MS = 3_600_000
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_alice="secret" user_bob="secret" user_carol="secret";'
)
SASL = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
    "connection.failed.authentication.delay.ms": "1",
}
TOKENS = {
    **SASL,
    "delegation.token.secret.key": "the key of all brokers",
    "delegation.token.max.lifetime.ms": str(10 * HOUR_MS),
    "delegation.token.expiry.time.ms": str(HOUR_MS),
    "delegation.token.expiry.check.interval.ms": "200",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VisibleBroker]:
    with visible_broker(tmp_path_factory.mktemp("tokens"), TOKENS) as broker:
        yield broker


def logged_in(broker: VisibleBroker, user: str) -> RawClient:
    client = RawClient("127.0.0.1", broker.broker.endpoints[1].port)
    client.call(17, 1, SaslHandshakeRequest(mechanism="PLAIN"))
    answer = client.call(36, 2, SaslAuthenticateRequest(auth_bytes=f"\0{user}\0secret".encode()))
    assert not answer.error_code
    return client


@pytest.fixture
def alice(running: VisibleBroker) -> Iterator[RawClient]:
    with logged_in(running, "alice") as client:
        yield client


@pytest.fixture
def bob(running: VisibleBroker) -> Iterator[RawClient]:
    with logged_in(running, "bob") as client:
        yield client


def create(
    client: RawClient, *renewers: str, owner: str | None = None, lifetime_ms: int = -1, kind: str = "User"
) -> Any:
    request = CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else "User",
        owner_principal_name=owner,
        renewers=[CreatableRenewers(principal_type=kind, principal_name=name) for name in renewers],
        max_lifetime_ms=lifetime_ms,
    )
    return client.call(38, 3, request)


def renew(client: RawClient, secret: bytes, period_ms: int = -1) -> tuple[int, int]:
    answer = client.call(39, 2, RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms))
    return answer.error_code, answer.expiry_timestamp_ms


def expire(client: RawClient, secret: bytes, period_ms: int = -1) -> tuple[int, int]:
    answer = client.call(40, 2, ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms))
    return answer.error_code, answer.expiry_timestamp_ms


def described(client: RawClient, *owners: str) -> dict[str, Any]:
    named = [DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners]
    answer = client.call(41, 3, DescribeDelegationTokenRequest(owners=named if owners else None))
    assert not answer.error_code
    return {token.token_id: token for token in answer.tokens}


def log_in(
    broker: VisibleBroker, token_id: str, secret: bytes, mechanism: ScramMechanism = SHA_256
) -> tuple[RawClient, Any]:
    client = RawClient("127.0.0.1", broker.broker.endpoints[1].port)
    client.call(17, 1, SaslHandshakeRequest(mechanism=mechanism.name))
    first = ClientFirst.make(token_id, scram.new_nonce(), {"tokenauth": "true"})
    answer = client.call(36, 2, SaslAuthenticateRequest(auth_bytes=bytes(first)))
    server_first = ServerFirst.parse(answer.auth_bytes)
    password = base64.b64encode(secret).decode()
    salted = scram.salted_password(mechanism, password, server_first.salt, server_first.iterations)
    unsigned = ClientFinal.make("n,,", server_first.nonce)
    proof = scram.client_proof(mechanism, salted, scram.signed_text(first, server_first, unsigned))
    final = ClientFinal.make("n,,", server_first.nonce, proof)
    return client, client.call(36, 2, SaslAuthenticateRequest(auth_bytes=bytes(final)))


def now_ms() -> int:
    return int(time.time() * 1000)


def principals(running: VisibleBroker) -> list[Principal]:
    return running.look(
        lambda broker: [
            connection.session.principal
            for connection in broker.server._connections
            if connection.session.is_token
        ]
    )


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
def test_a_token_logs_in_as_its_owner(
    running: VisibleBroker, alice: RawClient, mechanism: ScramMechanism
) -> None:
    token = create(alice)
    assert not token.error_code
    assert abs(token.expiry_timestamp_ms - now_ms() - HOUR_MS) < 60_000
    assert token.max_timestamp_ms - token.issue_timestamp_ms == 10 * HOUR_MS
    assert (token.principal_name, token.token_requester_principal_name) == ("alice", "alice")
    assert len(token.hmac) == 64
    for _ in range(2):
        client, answer = log_in(running, token.token_id, token.hmac, mechanism)
        with client:
            assert not answer.error_code
            # The session ends with the token.
            assert 0 < answer.session_lifetime_ms <= HOUR_MS
            assert principals(running) == [Principal("User", "alice")]
            # A token gives no tokens.
            refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            assert create(client).error_code == refused
            assert renew(client, token.hmac) == (refused, -1)
            assert expire(client, token.hmac) == (refused, -1)
            assert client.call(41, 3, DescribeDelegationTokenRequest(owners=None)).error_code == refused


def test_wrong_secrets_and_unknown_tokens(running: VisibleBroker, alice: RawClient) -> None:
    token = create(alice)
    for token_id, secret in ((token.token_id, b"x" * 64), ("unknown", token.hmac), ("alice", b"secret")):
        client, answer = log_in(running, token_id, secret)
        with client:
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert renew(alice, b"x" * 64) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, -1)
    assert expire(alice, b"") == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, -1)


def test_owners_and_renewers(running: VisibleBroker, alice: RawClient, bob: RawClient) -> None:
    mine, shared = create(alice), create(alice, "bob")
    mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert renew(bob, mine.hmac) == (mismatch, -1)
    assert expire(bob, mine.hmac) == (mismatch, -1)
    code, expires_ms = renew(bob, shared.hmac, 60_000)
    assert code == 0 and abs(expires_ms - now_ms() - 60_000) < 30_000
    # No longer than the broker's setting, and not beyond the end.
    code, expires_ms = renew(alice, shared.hmac, 100 * HOUR_MS)
    assert code == 0 and abs(expires_ms - now_ms() - HOUR_MS) < 30_000
    short = create(alice, lifetime_ms=120_000)
    assert renew(alice, short.hmac) == (0, short.max_timestamp_ms)
    assert create(alice, "g", kind="Group").error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    of_carol = create(alice, owner="carol")
    assert (of_carol.principal_name, of_carol.token_requester_principal_name) == ("carol", "alice")
    client, answer = log_in(running, of_carol.token_id, of_carol.hmac)
    with client:
        assert not answer.error_code
        assert principals(running) == [Principal("User", "carol")]


def test_descriptions(running: VisibleBroker, alice: RawClient) -> None:
    mine, shared = create(alice), create(alice, "dave", owner="carol")
    everything = described(alice)
    assert {mine.token_id, shared.token_id} <= everything.keys()
    token = everything[shared.token_id]
    assert (token.principal_name, token.token_requester_principal_name) == ("carol", "alice")
    assert [renewer.principal_name for renewer in token.renewers] == ["dave"]
    assert (token.hmac, token.max_timestamp) == (shared.hmac, shared.max_timestamp_ms)
    assert described(alice, "dave").keys() == {shared.token_id}
    assert mine.token_id not in described(alice, "carol")
    answer = alice.call(41, 3, DescribeDelegationTokenRequest(owners=[]))
    assert (answer.error_code, answer.tokens) == (0, [])


def test_the_end_of_a_token(running: VisibleBroker, alice: RawClient) -> None:
    token = create(alice)
    code, expires_ms = expire(alice, token.hmac, 100)
    assert code == 0 and expires_ms <= now_ms() + 100
    deadline = time.monotonic() + 10
    while token.token_id in described(alice):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    client, answer = log_in(running, token.token_id, token.hmac)
    with client:
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    other = create(alice)
    assert expire(alice, other.hmac)[0] == 0
    assert other.token_id not in described(alice)
    assert expire(alice, other.hmac)[0] == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_an_expired_token_that_is_not_swept_yet(tmp_path: Path) -> None:
    overrides = {**TOKENS, "delegation.token.expiry.check.interval.ms": "3600000"}
    with visible_broker(tmp_path, overrides) as broker, logged_in(broker, "alice") as client:
        token = create(client)
        assert expire(client, token.hmac, 0)[0] == 0
        time.sleep(0.01)
        assert renew(client, token.hmac)[0] == ErrorCode.DELEGATION_TOKEN_EXPIRED
        assert expire(client, token.hmac, 1000)[0] == ErrorCode.DELEGATION_TOKEN_EXPIRED
        stranger, answer = log_in(broker, token.token_id, token.hmac)
        with stranger:
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert expire(client, token.hmac, -1)[0] == 0


def test_tokens_are_kept_over_a_restart_without_their_secrets(tmp_path: Path) -> None:
    with visible_broker(tmp_path, TOKENS) as broker, logged_in(broker, "alice") as client:
        token = create(client)
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert token.token_id.encode() in stored
    assert base64.b64encode(token.hmac) not in stored and token.hmac.hex().encode() not in stored
    with visible_broker(tmp_path, TOKENS) as broker:
        client, answer = log_in(broker, token.token_id, token.hmac)
        with client:
            assert not answer.error_code
    with visible_broker(tmp_path, {**TOKENS, "delegation.token.secret.key": "another"}) as broker:
        client, answer = log_in(broker, token.token_id, token.hmac)
        with client:
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_the_salt_of_a_token_is_always_the_same(tmp_path: Path) -> None:
    """That of an unknown token is too: nobody can tell them apart."""

    def salt(broker: VisibleBroker, mechanism: ScramMechanism = SHA_256) -> bytes:
        with RawClient("127.0.0.1", broker.broker.endpoints[1].port) as client:
            client.call(17, 1, SaslHandshakeRequest(mechanism=mechanism.name))
            first = ClientFirst.make(made.token_id, scram.new_nonce(), {"tokenauth": "true"})
            answer = client.call(36, 2, SaslAuthenticateRequest(auth_bytes=bytes(first)))
            return ServerFirst.parse(answer.auth_bytes).salt

    with visible_broker(tmp_path, TOKENS) as broker, logged_in(broker, "alice") as client:
        made = create(client)
        before = salt(broker)
        assert before.isalnum() and before != salt(broker, SHA_512)
    with visible_broker(tmp_path, TOKENS) as broker:
        assert salt(broker) == before


def test_without_a_key_there_are_no_tokens(tmp_path: Path) -> None:
    disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    with visible_broker(tmp_path, SASL) as broker, logged_in(broker, "alice") as client:
        assert create(client).error_code == disabled
        assert renew(client, b"x") == (disabled, -1)
        assert expire(client, b"x") == (disabled, -1)
        assert client.call(41, 3, DescribeDelegationTokenRequest(owners=None)).error_code == disabled


def test_who_is_not_authenticated_gets_no_tokens(running: VisibleBroker) -> None:
    with RawClient("127.0.0.1", running.port) as client:
        assert create(client).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
