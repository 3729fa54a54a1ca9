"""SCRAM credentials of users: set, described, deleted, used to log in, and kept over a restart."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.raw_client import RawClient
from tests.support.visible_broker import VisibleBroker, visible_broker

from barnabas.errors import ErrorCode
from barnabas.security import scram
from barnabas.security.scram import ClientFinal, ClientFirst, ScramMechanism, ServerFinal, ServerFirst
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

DESCRIBE, ALTER = 50, 51
SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
OVERRIDES = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "connection.failed.authentication.delay.ms": "1",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VisibleBroker]:
    with visible_broker(tmp_path_factory.mktemp("scram"), OVERRIDES) as broker:
        yield broker


@pytest.fixture
def client(running: VisibleBroker) -> Iterator[RawClient]:
    with RawClient("127.0.0.1", running.port) as client:
        yield client


def upsertion(
    user: str, password: str = "secret", mechanism: ScramMechanism = SHA_256, iterations: int = 4096
) -> ScramCredentialUpsertion:
    salt = scram.new_salt()
    return ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism.code,
        iterations=iterations,
        salt=salt,
        salted_password=scram.salted_password(mechanism, password, salt, iterations),
    )


def deletion(user: str, mechanism: ScramMechanism = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=user, mechanism=mechanism.code)


def alter(client: RawClient, *changes: Any) -> dict[str, int]:
    request = AlterUserScramCredentialsRequest(
        deletions=[change for change in changes if isinstance(change, ScramCredentialDeletion)],
        upsertions=[change for change in changes if isinstance(change, ScramCredentialUpsertion)],
    )
    return {result.user: int(result.error_code) for result in client.call(ALTER, 0, request).results}


def describe(client: RawClient, *users: str) -> dict[str, Any]:
    """The credentials of each user as mechanism: iterations, or its error code."""
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users] or None)
    return {
        result.user: int(result.error_code)
        or {info.mechanism: info.iterations for info in result.credential_infos}
        for result in client.call(DESCRIBE, 0, request).results
    }


def sasl_port(running: VisibleBroker) -> int:
    return running.broker.endpoints[1].port


def can_log_in(port: int, user: str, password: str, mechanism: ScramMechanism = SHA_256) -> bool:
    with RawClient("127.0.0.1", port) as client:
        answer = client.call(17, 1, SaslHandshakeRequest(mechanism=mechanism.name))
        assert not answer.error_code
        first = ClientFirst.make(user, scram.new_nonce())
        challenge = client.call(36, 2, SaslAuthenticateRequest(auth_bytes=bytes(first)))
        # Whether the user exists is not told here.
        assert not challenge.error_code
        server_first = ServerFirst.parse(challenge.auth_bytes)
        salted = scram.salted_password(mechanism, password, server_first.salt, server_first.iterations)
        signed = scram.signed_text(first, server_first, ClientFinal.make("n,,", server_first.nonce))
        proof = scram.client_proof(mechanism, salted, signed)
        final = ClientFinal.make("n,,", server_first.nonce, proof)
        answer = client.call(36, 2, SaslAuthenticateRequest(auth_bytes=bytes(final)))
        if answer.error_code:
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert answer.error_message == (
                "Authentication failed during authentication due to invalid credentials with SASL mechanism "
                + mechanism.name
            )
            return False
        signature = ServerFinal.parse(answer.auth_bytes).signature
        assert scram.is_servers(mechanism, salted, signed, signature)
        return bool(client.call(3, 12, MetadataRequest(topics=None)).brokers)


def test_the_life_of_a_credential(running: VisibleBroker, client: RawClient) -> None:
    port = sasl_port(running)
    assert alter(client, upsertion("alice"), upsertion("bob", "other", SHA_512, 8192)) == {
        "alice": 0,
        "bob": 0,
    }
    assert describe(client, "alice", "bob") == {"alice": {1: 4096}, "bob": {2: 8192}}
    assert can_log_in(port, "alice", "secret")
    assert can_log_in(port, "bob", "other", SHA_512)
    assert not can_log_in(port, "alice", "wrong")
    assert not can_log_in(port, "alice", "secret", SHA_512)
    assert not can_log_in(port, "nobody", "secret")
    assert alter(client, upsertion("alice", "changed", iterations=16384)) == {"alice": 0}
    assert alter(client, upsertion("alice", "changed", SHA_512)) == {"alice": 0}
    assert not can_log_in(port, "alice", "secret")
    assert can_log_in(port, "alice", "changed")
    assert describe(client) == {"alice": {1: 16384, 2: 4096}, "bob": {2: 8192}}
    assert alter(client, deletion("alice"), deletion("bob", SHA_512)) == {"alice": 0, "bob": 0}
    assert not can_log_in(port, "alice", "changed")
    assert describe(client, "bob", "alice") == {"bob": ErrorCode.RESOURCE_NOT_FOUND, "alice": {2: 4096}}


def test_what_is_refused(client: RawClient) -> None:
    short = upsertion("short")
    short.salted_password = b""
    no_salt = upsertion("no salt")
    no_salt.salt = b""
    unknown = upsertion("unknown mechanism")
    unknown.mechanism = 3
    assert alter(
        client,
        upsertion("few", iterations=4095),
        upsertion("many", iterations=16385),
        upsertion(""),
        short,
        no_salt,
        unknown,
        upsertion("twice"),
        upsertion("twice", mechanism=SHA_512),
        deletion("missing"),
        deletion("missing"),
        upsertion("good"),
    ) == {
        "few": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "many": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "short": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "no salt": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "unknown mechanism": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "twice": ErrorCode.DUPLICATE_RESOURCE,
        "missing": ErrorCode.RESOURCE_NOT_FOUND,
        "good": 0,
    }
    assert describe(client, "twice", "good", "good") == {
        "twice": ErrorCode.RESOURCE_NOT_FOUND,
        "good": ErrorCode.DUPLICATE_RESOURCE,
    }
    assert alter(client, deletion("good"), upsertion("good")) == {"good": ErrorCode.DUPLICATE_RESOURCE}
    assert alter(client, deletion("good")) == {"good": 0}


def test_many_changes_in_one_request(client: RawClient) -> None:
    one = upsertion("")
    changes = []
    for number in range(1000):
        changes.append(upsertion_like(one, f"user-{number}"))
    assert set(alter(client, *changes).values()) == {0}
    assert len(describe(client)) >= 1000
    assert set(alter(client, *(deletion(change.name) for change in changes)).values()) == {0}


def upsertion_like(one: ScramCredentialUpsertion, user: str) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=user,
        mechanism=one.mechanism,
        iterations=one.iterations,
        salt=one.salt,
        salted_password=one.salted_password,
    )


def test_credentials_are_kept_over_a_restart_in_files_of_the_owner(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with visible_broker(tmp_path, OVERRIDES) as broker, RawClient("127.0.0.1", broker.port) as client:
        assert alter(client, upsertion("carol", "kept")) == {"carol": 0}
        stored = broker.look(lambda broker: broker.image.scram_credentials["carol", 1])
    files = [path for path in (tmp_path / "barnabas-metadata").rglob("*") if path.is_file()]
    assert files and all(path.stat().st_mode & 0o077 == 0 for path in files)
    with visible_broker(tmp_path, OVERRIDES) as broker:
        assert can_log_in(sasl_port(broker), "carol", "kept")
    assert stored.split(",")[2] not in caplog.text
