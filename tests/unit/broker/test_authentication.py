"""SASL at a listener: what is answered before and after an authentication, frame by frame."""

import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.raw_client import RawClient
from tests.support.visible_broker import VisibleBroker, visible_broker

from barnabas.broker import authenticator
from barnabas.broker.startup import broker_config
from barnabas.config.definition import ConfigError
from barnabas.errors import ErrorCode
from barnabas.security.principal import Principal
from barnabas.security.sasl.server import ScramServerExchange
from barnabas.wire.message import Message
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

METADATA, HANDSHAKE, API_VERSIONS, AUTHENTICATE = 3, 17, 18, 36
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="broker" password="between" user_alice="secret" user_bob="other";'
)
SASL = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
    "connection.failed.authentication.delay.ms": "30",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VisibleBroker]:
    with visible_broker(tmp_path_factory.mktemp("sasl"), SASL) as broker:
        yield broker


@pytest.fixture
def client(running: VisibleBroker) -> Iterator[RawClient]:
    with RawClient("127.0.0.1", running.port) as client:
        yield client


def handshake(client: RawClient, mechanism: str = "PLAIN", version: int = 1) -> SaslHandshakeResponse:
    answer: SaslHandshakeResponse = client.call(HANDSHAKE, version, SaslHandshakeRequest(mechanism=mechanism))
    return answer


def token(client: RawClient, data: bytes, version: int = 2) -> SaslAuthenticateResponse:
    answer: SaslAuthenticateResponse = client.call(
        AUTHENTICATE, version, SaslAuthenticateRequest(auth_bytes=data)
    )
    return answer


def is_served(client: RawClient) -> bool:
    return bool(client.call(METADATA, 12, MetadataRequest(topics=None)).brokers)


def principals(running: VisibleBroker) -> list[Principal]:
    return running.look(
        lambda broker: [connection.session.principal for connection in broker.server._connections]
    )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_right_password_opens_the_connection(
    running: VisibleBroker, client: RawClient, version: int
) -> None:
    assert not client.call(API_VERSIONS, 3, versions_request()).error_code
    answer = handshake(client)
    assert (answer.error_code, answer.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-256"])
    answered = token(client, b"\0alice\0secret", version)
    assert (answered.error_code, answered.auth_bytes, answered.session_lifetime_ms) == (0, b"", 0)
    assert is_served(client)
    assert Principal("User", "alice") in principals(running)


def versions_request() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="test", client_software_version="1")


def test_tokens_in_plain_frames_after_a_handshake_v0(client: RawClient) -> None:
    """PLAIN's messages can be shorter than any request."""
    assert not handshake(client, version=0).error_code
    client.send_bytes(struct.pack(">i", 13) + b"\0alice\0secret")
    assert client.receive_frame() == b""
    assert is_served(client)


def test_a_wrong_token_in_a_plain_frame_closes(client: RawClient) -> None:
    handshake(client, version=0)
    client.send_bytes(struct.pack(">i", 4) + b"\0a\0b")
    assert client.is_closed_by_peer(5)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (b"\0broker\0between", "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (
            b"\xff",
            "Authentication failed during authentication due to invalid credentials "
            "with SASL mechanism PLAIN",
        ),
    ],
)
def test_failures_are_answered_after_a_pause_and_close(client: RawClient, data: bytes, message: str) -> None:
    handshake(client)
    started = time.monotonic()
    answer = token(client, data)
    assert time.monotonic() - started >= 0.03
    assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, message)
    assert client.is_closed_by_peer(5)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "GSSAPI", "", "plain"])
def test_a_mechanism_that_is_not_enabled(client: RawClient, mechanism: str) -> None:
    answer = handshake(client, mechanism)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256"]
    assert client.is_closed_by_peer(5)


@pytest.mark.parametrize(
    ("key", "version", "message"),
    [
        (METADATA, 12, MetadataRequest(topics=None)),
        (AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")),
        (0, 9, ProduceRequest(acks=-1, timeout_ms=1000)),
    ],
)
def test_other_requests_before_authentication_close(
    client: RawClient, key: int, version: int, message: Message
) -> None:
    client.send(key, version, message)
    assert client.is_closed_by_peer(5)


def test_requests_behind_the_first_ones_do_not_pass(client: RawClient) -> None:
    """All in one packet: neither the wrong password nor the produce after it opens anything."""
    frames = client.encode(HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
    frames += client.encode(AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=b"\0alice\0no"))
    frames += client.encode(METADATA, 12, MetadataRequest(topics=None))
    client.send_bytes(frames)
    client.receive(HANDSHAKE, 1)
    assert client.receive(AUTHENTICATE, 2)[1].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert client.is_closed_by_peer(5)


def test_all_in_one_packet_with_the_right_password(client: RawClient) -> None:
    frames = client.encode(HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
    frames += client.encode(AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"))
    frames += client.encode(METADATA, 12, MetadataRequest(topics=None))
    client.send_bytes(frames)
    client.receive(HANDSHAKE, 1)
    client.receive(AUTHENTICATE, 2)
    assert client.receive(METADATA, 12)[1].brokers


def test_the_order_of_the_first_requests(running: VisibleBroker, client: RawClient) -> None:
    assert client.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
    client.send(API_VERSIONS, 0, ApiVersionsRequest())
    assert client.is_closed_by_peer(5)
    for key, message, kind in (
        (API_VERSIONS, ApiVersionsRequest(), ApiVersionsResponse),
        (HANDSHAKE, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse),
    ):
        with RawClient("127.0.0.1", running.port) as other:
            handshake(other)
            answer = other.call(key, 1, message)
            assert isinstance(answer, kind)
            assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert other.is_closed_by_peer(5)


def test_an_unknown_version_of_api_versions_may_be_repeated(client: RawClient) -> None:
    frame = bytearray(client.encode(API_VERSIONS, 4, versions_request()))
    frame[6:8] = struct.pack(">h", 99)
    client.send_bytes(bytes(frame))
    assert client.receive(API_VERSIONS, 0)[1].error_code == ErrorCode.UNSUPPORTED_VERSION
    assert not client.call(API_VERSIONS, 4, versions_request()).error_code
    assert not handshake(client).error_code


def test_handshakes_after_authentication_without_an_end(client: RawClient) -> None:
    handshake(client)
    token(client, b"\0alice\0secret")
    assert handshake(client).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert token(client, b"\0alice\0secret").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert is_served(client)


@pytest.mark.parametrize("size", [524_289, 2**31 - 1, -1, 7])
def test_the_size_of_a_frame_before_authentication(client: RawClient, size: int) -> None:
    client.send_bytes(struct.pack(">i", size))
    assert client.is_closed_by_peer(5)


def test_after_authentication_frames_may_be_long(client: RawClient) -> None:
    handshake(client)
    token(client, b"\0alice\0secret")
    # The decoder takes no notice of bytes after a request.
    frame = client.encode(METADATA, 9, MetadataRequest(topics=None))[4:] + b"\0" * 600_000
    client.send_bytes(struct.pack(">i", len(frame)) + frame)
    assert client.receive(METADATA, 9)[1].brokers


def test_an_exchange_has_a_deadline(running: VisibleBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authenticator, "EXCHANGE_SECONDS_MAX", 0.2)
    with RawClient("127.0.0.1", running.port) as slow:
        assert slow.is_silent(0.1)
        handshake(slow)
        assert slow.is_closed_by_peer(5)
    with RawClient("127.0.0.1", running.port) as quick:
        handshake(quick)
        token(quick, b"\0alice\0secret")
        assert quick.is_silent(0.4)
        assert is_served(quick)


def test_failures_are_counted_by_host_and_logged_once(
    running: VisibleBroker, caplog: pytest.LogCaptureFixture
) -> None:
    running.look(lambda broker: broker.authentication.failures.clear())
    for _ in range(3):
        with RawClient("127.0.0.1", running.port) as client:
            handshake(client)
            token(client, b"\0alice\0hunter2")
    assert running.look(lambda broker: dict(broker.authentication.failures)) == {"127.0.0.1": 3}
    assert caplog.text.count("authentication from 127.0.0.1 failed") == 1
    assert "hunter2" not in caplog.text


# ---- re-authentication (KIP-368)


@pytest.fixture
def short_sessions(tmp_path: Path) -> Iterator[VisibleBroker]:
    overrides = {
        **SASL,
        "connections.max.reauth.ms": "60000",
        "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "1500",
    }
    with visible_broker(tmp_path, overrides) as broker:
        yield broker


def test_a_session_ends_unless_the_client_authenticates_again(
    short_sessions: VisibleBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authenticator, "REAUTHENTICATION_SECONDS_MIN", 0.3)
    with (
        RawClient("127.0.0.1", short_sessions.port) as loyal,
        RawClient("127.0.0.1", short_sessions.port) as lazy,
        RawClient("127.0.0.1", short_sessions.port) as late,
    ):
        for client in (loyal, lazy, late):
            handshake(client)
            assert token(client, b"\0alice\0secret").session_lifetime_ms == 1500
        time.sleep(0.8)
        assert not handshake(loyal).error_code
        assert token(loyal, b"\0alice\0secret").session_lifetime_ms == 1500
        # Not more often than allowed; the session goes on.
        assert handshake(loyal).error_code == ErrorCode.ILLEGAL_SASL_STATE
        time.sleep(0.9)
        assert is_served(loyal)
        lazy.send(METADATA, 12, MetadataRequest(topics=None))
        assert lazy.is_closed_by_peer(5)
        assert not handshake(late).error_code
        assert not token(late, b"\0alice\0secret").error_code
        assert is_served(late)
    assert short_sessions.look(lambda broker: broker.authentication.expired) == 1


def test_a_session_keeps_its_user_and_its_mechanism(short_sessions: VisibleBroker) -> None:
    with RawClient("127.0.0.1", short_sessions.port) as client:
        handshake(client)
        token(client, b"\0alice\0secret")
        handshake(client)
        answer = token(client, b"\0bob\0other")
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == (
            "Cannot change principals during re-authentication from User.alice: User.bob"
        )
        assert client.is_closed_by_peer(5)
    with RawClient("127.0.0.1", short_sessions.port) as client:
        handshake(client)
        token(client, b"\0alice\0secret")
        assert not handshake(client, "SCRAM-SHA-256").error_code
        client.send(AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=abc"))
        assert client.is_closed_by_peer(5)
    with RawClient("127.0.0.1", short_sessions.port) as client:
        handshake(client)
        token(client, b"\0alice\0secret")
        handshake(client)
        client.send(METADATA, 12, MetadataRequest(topics=None))
        assert client.is_closed_by_peer(5)


def test_a_closed_connection_is_forgotten_before_its_session_ends(tmp_path: Path) -> None:
    with visible_broker(tmp_path, {**SASL, "connections.max.reauth.ms": "3600000"}) as broker:
        with RawClient("127.0.0.1", broker.port) as client:
            handshake(client)
            assert token(client, b"\0alice\0secret").session_lifetime_ms == 3_600_000
            (connection,) = broker.look(lambda broker: list(broker.server._connections))
            found = connection.session.authenticator
            assert found._timer is not None
        deadline = time.monotonic() + 10
        while found._timer is not None:
            assert time.monotonic() < deadline
            time.sleep(0.01)


# ---- settings


def refusal(tmp_path: Path, overrides: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as error:
        broker_config(None, tmp_path, None, overrides)
    return str(error.value)


LISTENER = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
}


def test_listeners_that_cannot_be_served_do_not_start(tmp_path: Path) -> None:
    gssapi = refusal(tmp_path, LISTENER)
    assert gssapi == (
        "The listener SASL_PLAINTEXT asks for GSSAPI (Kerberos), which is not served: set "
        "sasl.enabled.mechanisms to one or more of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER."
    )
    assert "GSSAPI" in refusal(tmp_path, {**LISTENER, "sasl.enabled.mechanisms": "PLAIN,GSSAPI"})
    assert "DIGEST-MD5 is not served" in refusal(
        tmp_path, {**LISTENER, "sasl.enabled.mechanisms": "DIGEST-MD5"}
    )
    no_users = refusal(tmp_path, {**LISTENER, "sasl.enabled.mechanisms": "PLAIN"})
    assert "set listener.name.sasl_plaintext.plain.sasl.jaas.config" in no_users
    secret = {"listener.name.sasl_plaintext.plain.sasl.jaas.config": 'Module required user_a="hunter2"'}
    wrong = refusal(tmp_path, {**LISTENER, "sasl.enabled.mechanisms": "PLAIN", **secret})
    assert "hunter2" not in wrong


def test_a_listener_has_its_own_mechanisms(tmp_path: Path) -> None:
    own = {"listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-512"}
    config = broker_config(None, tmp_path, None, {**LISTENER, **own})
    assert config.without_effect == []


def test_mechanisms_between_brokers_must_be_enabled(tmp_path: Path) -> None:
    cluster = {
        **LISTENER,
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "zookeeper.connect": "127.0.0.1:1",
    }
    assert "sasl.mechanism.inter.broker.protocol is GSSAPI" in refusal(tmp_path, cluster)
    broker_config(None, tmp_path, None, {**cluster, "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"})


@pytest.mark.parametrize(
    ("host", "mechanisms", "exposed"),
    [
        ("127.0.0.1", "PLAIN,OAUTHBEARER", None),
        ("", "PLAIN,SCRAM-SHA-256", "PASSWORDS"),
        ("", "SCRAM-SHA-256", None),
        ("", "OAUTHBEARER", "TOKENS"),
        ("", "PLAIN,OAUTHBEARER", "PASSWORDS AND TOKENS"),
    ],
)
def test_secrets_in_plain_text_beyond_this_machine_warn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, host: str, mechanisms: str, exposed: str | None
) -> None:
    overrides = {
        **SASL,
        "listeners": f"SASL_PLAINTEXT://{host}:0",
        "advertised.listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": mechanisms,
        "sasl.oauthbearer.jwks.endpoint.url": "https://id.example.com/keys",
        "sasl.oauthbearer.expected.audience": "events",
    }
    with visible_broker(tmp_path, overrides):
        if exposed is None:
            assert "PLAIN TEXT" not in caplog.text
        else:
            assert f" TAKES {exposed} AS PLAIN TEXT" in caplog.text
    assert "secret" not in caplog.text


def test_mechanisms_and_passwords_change_while_the_broker_runs(tmp_path: Path) -> None:
    with visible_broker(tmp_path, SASL) as broker, RawClient("127.0.0.1", broker.port) as client:
        handshake(client)
        token(client, b"\0alice\0secret")
        changes = {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS.replace("secret", "changed"),
        }
        assert alter_own_settings(client, changes) == 0
        assert is_served(client)
        with RawClient("127.0.0.1", broker.port) as other:
            assert handshake(other).mechanisms == ["PLAIN", "SCRAM-SHA-512"]
            assert not token(other, b"\0alice\0changed").error_code
        with RawClient("127.0.0.1", broker.port) as other:
            handshake(other)
            assert token(other, b"\0alice\0secret").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        # What cannot be served changes nothing.
        assert alter_own_settings(client, {"sasl.enabled.mechanisms": "GSSAPI"}) == 0
        with RawClient("127.0.0.1", broker.port) as other:
            assert handshake(other).mechanisms == ["PLAIN", "SCRAM-SHA-512"]


def alter_own_settings(client: RawClient, changes: dict[str, str]) -> int:
    configs = [AlterableConfig(name=name, config_operation=0, value=value) for name, value in changes.items()]
    named = AlterConfigsResource(resource_type=4, resource_name="1", configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[named])
    (answer,) = client.call(44, 1, request).responses
    return int(answer.error_code)


def test_brokers_with_a_shared_secret_pretend_the_same_salts(tmp_path: Path) -> None:
    def salt(directory: str, overrides: dict[str, str]) -> bytes:
        settings = {**SASL, **overrides}
        with (
            visible_broker(tmp_path / directory, settings) as broker,
            RawClient("127.0.0.1", broker.port) as client,
        ):
            handshake(client, "SCRAM-SHA-256")
            return bytes(token(client, b"n,,n=nobody,r=abc").auth_bytes).split(b",")[1]

    shared = {"delegation.token.secret.key": "shared"}
    assert salt("one", shared) == salt("two", shared)
    assert salt("three", {}) != salt("three", {})


def test_a_defect_in_slow_work_closes_the_connection(
    running: VisibleBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(ScramServerExchange, "preparation", lambda exchange, token: fail)
    with RawClient("127.0.0.1", running.port) as client:
        handshake(client, "SCRAM-SHA-256")
        client.send(AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=abc"))
        assert client.is_closed_by_peer(5)
    assert "failed by a defect" in caplog.text


def test_a_connection_that_has_to_wait_for_its_turn_is_guarded_too(tmp_path: Path) -> None:
    """Too many connections at once are accepted but wait; what they send meanwhile is not answered later."""
    with visible_broker(tmp_path, {**SASL, "max.connection.creation.rate": "1"}) as broker:
        clients = [RawClient("127.0.0.1", broker.port) for _ in range(4)]
        for client in clients:
            client.send(METADATA, 12, MetadataRequest(topics=None))
        owners = broker.look(lambda broker: {type(each._owner) for each in broker.server._connections})
        assert owners <= {authenticator.Authenticator}
        for client in clients:
            assert client.is_closed_by_peer(15)
            client.close()
