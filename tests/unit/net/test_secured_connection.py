"""Connections over TLS and with SASL: who is let in, who is not, and what the error says."""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.support.certificates import Authority
from tests.support.scripted_peer import CLOSE, Answer, ScriptedPeer
from tests.support.secured_peer import AUTHENTICATE, HANDSHAKE, Sasl, SecuredPeer

from barnabas.client.config import admin_config
from barnabas.errors import AuthenticationError, DisconnectedError
from barnabas.net import authenticating
from barnabas.net.broker_connection import BrokerConnection
from barnabas.security.tls import TlsSettings, server_context
from barnabas.wire.codec import Request
from barnabas.wire.messages import metadata

AUTHORITY = Authority()
METADATA = metadata.API_KEY
ALICE = {"sasl.username": "alice", "sasl.password": "secret-of-alice"}


def brokers(count: int) -> Answer:
    """An answer of many bytes."""
    hosts = [metadata.MetadataResponseBroker(node_id=each, host="x" * 30_000) for each in range(count)]
    return metadata.MetadataResponse(brokers=hosts)


def clusters(request: Request) -> Answer:
    return brokers(4)


def tls_of(authority: Authority = AUTHORITY, *names: str, **more: str) -> Any:
    server = authority.server(*names)
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": server.key_pem(),
        "ssl.keystore.certificate.chain": server.chain_pem,
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return server_context(TlsSettings.from_config(settings.get))


def trusting(authority: Authority = AUTHORITY, protocol: str = "SSL", **more: str) -> dict[str, str]:
    return {"security.protocol": protocol, "ssl.ca.pem": authority.pem, **more}


def connect(
    peer: ScriptedPeer,
    settings: dict[str, str],
    story: Callable[[BrokerConnection], Coroutine[Any, Any, None]],
) -> None:
    async def run() -> None:
        config = admin_config({"bootstrap.servers": peer.bootstrap, **settings})
        connection = await BrokerConnection.open("127.0.0.1", peer.port, config.connection_settings)
        try:
            await story(connection)
        finally:
            connection.close()
            await asyncio.sleep(0)

    asyncio.run(run())


async def ask(connection: BrokerConnection) -> None:
    answer = await connection.send(METADATA, metadata.MetadataRequest())
    assert [broker.node_id for broker in answer.brokers] == [0, 1, 2, 3]


# ---- TLS


def test_answers_larger_than_a_tls_record_arrive_whole_and_in_order() -> None:
    def answer(request: Request) -> Answer:
        return brokers(len(request.message.topics))

    async def story(connection: BrokerConnection) -> None:
        def asking(count: int) -> metadata.MetadataRequest:
            topics = [metadata.MetadataRequestTopic(name=f"t{each}") for each in range(count)]
            return metadata.MetadataRequest(topics=topics)

        answers = await asyncio.gather(
            *(connection.send(METADATA, asking(count % 40)) for count in range(100))
        )
        assert [len(each.brokers) for each in answers] == [count % 40 for count in range(100)]
        assert all(broker.host == "x" * 30_000 for each in answers for broker in each.brokers)

    with SecuredPeer(answer, tls_of()) as peer:
        connect(peer, trusting(), story)


def test_a_client_shows_its_certificate_from_files_that_librdkafka_names(tmp_path: Path) -> None:
    alice = AUTHORITY.client()
    for name, text in (("cert", alice.chain_pem), ("key", alice.key_pem("pass")), ("ca", AUTHORITY.pem)):
        (tmp_path / name).write_text(text)
    settings = {
        "security.protocol": "ssl",
        "ssl.ca.location": str(tmp_path / "ca"),
        "ssl.certificate.location": str(tmp_path / "cert"),
        "ssl.key.location": str(tmp_path / "key"),
        "ssl.key.password": "pass",
    }
    wants = tls_of(
        ssl_client_auth="required", ssl_truststore_type="PEM", ssl_truststore_certificates=AUTHORITY.pem
    )
    with SecuredPeer(clusters, wants) as peer:
        connect(peer, settings, ask)


@pytest.mark.parametrize("protocols", ["TLSv1.2", "TLSv1.3"])
def test_a_client_without_the_certificate_that_the_broker_wants_learns_it(protocols: str) -> None:
    wants = tls_of(
        ssl_client_auth="required",
        ssl_truststore_type="PEM",
        ssl_truststore_certificates=AUTHORITY.pem,
        ssl_enabled_protocols=protocols,
    )
    with SecuredPeer(clusters, wants) as peer, pytest.raises(AuthenticationError) as caught:
        connect(peer, trusting(), ask)
    assert "wants a certificate of this client" in str(caught.value)


def test_a_certificate_of_another_authority_is_not_trusted() -> None:
    with (
        SecuredPeer(clusters, tls_of(Authority("CN=Another"))) as peer,
        pytest.raises(AuthenticationError, match=r"does not trust the certificate.*ssl\.truststore"),
    ):
        connect(peer, trusting(), ask)


def test_a_client_of_another_authority_is_refused_by_the_broker() -> None:
    stranger = Authority("CN=Another").client()
    mine = {"ssl.certificate.pem": stranger.chain_pem, "ssl.key.pem": stranger.key_pem()}
    wants = tls_of(
        ssl_client_auth="required", ssl_truststore_type="PEM", ssl_truststore_certificates=AUTHORITY.pem
    )
    with SecuredPeer(clusters, wants) as peer, pytest.raises(AuthenticationError, match="unknown ca"):
        connect(peer, trusting(**mine), ask)


def test_the_name_of_the_broker_is_checked_unless_it_is_switched_off() -> None:
    with SecuredPeer(clusters, tls_of(AUTHORITY, "broker.example")) as peer:
        with pytest.raises(AuthenticationError, match="Connect with a name that the certificate has"):
            connect(peer, trusting(), ask)
        connect(peer, trusting(**{"ssl.endpoint.identification.algorithm": ""}), ask)


def test_tls_to_a_listener_without_it_and_the_other_way_round() -> None:
    # The peer takes the beginning of the handshake for a size, and waits for the rest.
    soon = {"socket.connection.setup.timeout.ms": "300"}
    with SecuredPeer(clusters) as peer, pytest.raises(DisconnectedError, match=r"within 0\.\d+ s"):
        connect(peer, trusting(**soon), ask)
    with (
        SecuredPeer(clusters, tls_of()) as peer,
        pytest.raises(DisconnectedError, match=r"set security\.protocol"),
    ):
        connect(peer, {}, ask)


def test_something_that_does_not_speak_tls_is_a_fatal_error() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def greet() -> None:
        connection, _ = listener.accept()
        connection.sendall(b"220 mail.example ESMTP\r\n")
        connection.recv(10_000)
        connection.close()

    thread = threading.Thread(target=greet)
    thread.start()

    async def run() -> None:
        port = listener.getsockname()[1]
        config = admin_config({"bootstrap.servers": "h:1", **trusting()})
        with pytest.raises(AuthenticationError, match="does not speak TLS"):
            await BrokerConnection.open("127.0.0.1", port, config.connection_settings)

    asyncio.run(run())
    thread.join()
    listener.close()


def test_a_changed_trust_store_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(Authority("CN=Old").pem)
    config = admin_config(
        {"bootstrap.servers": "h:1", "security.protocol": "SSL", "ssl.ca.location": str(file)}
    )

    async def attempt(port: int) -> None:
        connection = await BrokerConnection.open("127.0.0.1", port, config.connection_settings)
        connection.close()
        await asyncio.sleep(0)

    with SecuredPeer(clusters, tls_of()) as peer:
        with pytest.raises(AuthenticationError):
            asyncio.run(attempt(peer.port))
        file.write_text(AUTHORITY.pem)
        asyncio.run(attempt(peer.port))
        file.write_text("not a certificate")
        asyncio.run(attempt(peer.port))


# ---- SASL


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_with_a_password_is_let_in(protocol: str, mechanism: str) -> None:
    sasl = Sasl({"alice": "secret-of-alice"})
    settings = trusting(AUTHORITY, protocol, **{"sasl.mechanism": mechanism}, **ALICE)
    with SecuredPeer(clusters, tls_of() if protocol == "SASL_SSL" else None, sasl) as peer:
        connect(peer, settings, ask)
    assert sasl.sessions == ["alice"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_reported_in_the_words_of_the_broker(
    mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, **ALICE}
    with (
        caplog.at_level(logging.DEBUG),
        SecuredPeer(clusters, sasl=Sasl({"alice": "other"})) as peer,
        pytest.raises(AuthenticationError, match="these are not the credentials of a user") as caught,
    ):
        connect(peer, settings, ask)
    assert not caught.value.retriable
    assert "secret-of-alice" not in f"{caught.value!r} {caplog.text}"


def test_a_mechanism_that_the_broker_does_not_take_is_named_with_those_it_takes() -> None:
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **ALICE}
    with (
        SecuredPeer(clusters, sasl=Sasl(mechanisms=("SCRAM-SHA-512",))) as peer,
        pytest.raises(AuthenticationError, match="PLAIN; it takes SCRAM-SHA-512"),
    ):
        connect(peer, settings, ask)


def test_a_listener_without_sasl_is_a_fatal_error() -> None:
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **ALICE}
    with SecuredPeer(clusters) as peer, pytest.raises(AuthenticationError, match=r"security\.protocol"):
        connect(peer, settings, ask)


@pytest.mark.parametrize("iterations", [1, 4095, 16385, 900_000_000])
def test_a_broker_that_asks_for_too_few_or_too_many_iterations_is_not_accepted(iterations: int) -> None:
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", **ALICE}
    sasl = Sasl({"alice": "secret-of-alice"}, iterations=iterations)
    with (
        SecuredPeer(clusters, sasl=sasl) as peer,
        pytest.raises(AuthenticationError, match=f"asks for {iterations} iterations"),
    ):
        connect(peer, settings, ask)


def test_a_broker_that_does_not_know_the_password_is_not_accepted() -> None:
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", **ALICE}
    sasl = Sasl({"alice": "secret-of-alice"}, signs_wrongly=True)
    with (
        SecuredPeer(clusters, sasl=sasl) as peer,
        pytest.raises(AuthenticationError, match="signature is wrong"),
    ):
        connect(peer, settings, ask)


def test_a_delegation_token_is_marked_as_one() -> None:
    jaas = 'x.ScramLoginModule required username="id" password="hmac" tokenauth="true";'
    settings = {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas
    }  # fmt: skip
    sasl = Sasl({"id": "hmac"})
    with SecuredPeer(clusters, sasl=sasl) as peer:
        connect(peer, settings, ask)
    assert sasl.sessions == ["token id"]


def bearer(provider: Any) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauth.token.provider": provider,
    }


def test_a_token_of_a_function_is_sent_and_a_refused_one_is_asked_for_again() -> None:
    tokens = iter(["wrong", "right"])
    sasl = Sasl(tokens=("right",))
    config = bearer(lambda: (next(tokens), 4_000_000_000))

    async def run(peer: ScriptedPeer) -> None:
        settings = admin_config({"bootstrap.servers": peer.bootstrap, **config}).connection_settings
        with pytest.raises(AuthenticationError, match="invalid_token"):
            await BrokerConnection.open("127.0.0.1", peer.port, settings)
        for _ in range(2):
            connection = await BrokerConnection.open("127.0.0.1", peer.port, settings)
            connection.close()

    with SecuredPeer(clusters, sasl=sasl) as peer:
        asyncio.run(run(peer))
    # The second connection used the token that was kept.
    assert sasl.sessions == ["right", "right"]


# ---- authenticating again


@pytest.fixture
def may_repeat_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authenticating, "REPEAT_SECONDS_MIN", 0.0)


def test_a_session_of_no_length_does_not_keep_a_client_busy() -> None:
    sasl = Sasl({"alice": "secret-of-alice"}, session_ms=1)
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **ALICE}

    async def story(connection: BrokerConnection) -> None:
        await asyncio.sleep(0.3)

    with SecuredPeer(clusters, sasl=sasl) as peer:
        connect(peer, settings, story)
    assert len(sasl.sessions) == 1


@pytest.mark.usefixtures("may_repeat_soon")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_connection_authenticates_again_without_losing_requests(mechanism: str) -> None:
    sasl = Sasl({"alice": "secret-of-alice"}, session_ms=100)
    settings = trusting(AUTHORITY, "SASL_SSL", **{"sasl.mechanism": mechanism}, **ALICE)

    async def story(connection: BrokerConnection) -> None:
        waiting: list[asyncio.Future[Any]] = []
        while len(sasl.sessions) < 4:
            waiting.append(connection.request(METADATA, metadata.MetadataRequest()))
            await asyncio.sleep(0.001)
        answers = await asyncio.gather(*waiting)
        assert len(answers) > 20
        # The next authentication, which has one request at a time, may be under way on a busy machine.
        assert connection.pending <= 1

    with SecuredPeer(clusters, tls_of(), sasl) as peer:
        connect(peer, settings, story)
    keys = peer.api_keys[0]
    starts = [at for at, key in enumerate(keys) if key == HANDSHAKE]
    assert len(starts) >= 4
    for start in starts[:-1]:
        assert keys[start + 1] == AUTHENTICATE


@pytest.mark.usefixtures("may_repeat_soon")
def test_a_connection_that_only_authenticates_is_idle() -> None:
    sasl = Sasl({"alice": "secret-of-alice"}, session_ms=50)
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **ALICE}

    async def story(connection: BrokerConnection) -> None:
        closed = asyncio.Event()
        connection.when_closed = lambda _: closed.set()
        async with asyncio.timeout(10):
            await closed.wait()

    with SecuredPeer(clusters, sasl=sasl) as peer:
        connect(peer, {**settings, "connections.max.idle.ms": "400"}, story)
    assert len(sasl.sessions) > 2


@pytest.mark.usefixtures("may_repeat_soon")
def test_if_authenticating_again_fails_the_connection_is_closed_and_callers_know() -> None:
    sasl = Sasl({"alice": "secret-of-alice"}, session_ms=50)
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **ALICE}

    async def story(connection: BrokerConnection) -> None:
        sasl.users = {}
        with pytest.raises(DisconnectedError, match="could not authenticate again"):
            while True:
                await connection.send(METADATA, metadata.MetadataRequest())

    with SecuredPeer(clusters, sasl=sasl) as peer:
        connect(peer, settings, story)


def test_a_connection_lost_during_the_exchange_is_an_error_that_may_pass() -> None:
    class Leaving(SecuredPeer):
        def first_answer(self, request: Request) -> Answer:
            return super().first_answer(request)

    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **ALICE}
    with Leaving(clusters, sasl=Sasl({"alice": "secret-of-alice"})) as peer:
        peer.sasl.mechanisms = Cutting()  # type: ignore[union-attr, assignment]
        with pytest.raises(DisconnectedError):
            connect(peer, settings, ask)


class Cutting(tuple[str, ...]):
    """A list of mechanisms that fails when it is read: the peer's thread closes the connection."""

    def __iter__(self) -> Any:
        raise OSError(CLOSE)
