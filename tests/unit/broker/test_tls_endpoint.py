"""A listener with TLS on a running broker: data, who the peer is, peers that fail, and other certificates."""

import contextlib
import logging
import os
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from tests.support.certificates import Authority
from tests.support.raw_calls import (
    FETCH,
    PRODUCE,
    batch_of,
    fetch_partition,
    fetch_request,
    new_topic,
    produce_batch,
    produce_request,
)
from tests.support.raw_client import RawClient
from tests.support.raw_tls import TlsRawClient, context_of, pem_trust, tls_listener
from tests.support.visible_broker import VisibleBroker, visible_broker
from tests.unit.broker.test_dynamic_settings import alter

from barnabas.broker import tls_endpoint
from barnabas.broker.broker import Broker
from barnabas.errors import ErrorCode
from barnabas.net import tls_connection
from barnabas.testing.ports import free_ports
from barnabas.wire.messages.api_versions import ApiVersionsRequest

API_VERSIONS = 18


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module", params=["memory", "socket"])
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[VisibleBroker]:
    """Once as on a kernel without TLS, once as on one that has it; if this one has not, OpenSSL encrypts."""
    directory = tmp_path_factory.mktemp("tls")
    settings = tls_listener(authority.server(), directory) | pem_trust(authority)
    settings |= {
        "ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": r"RULE:^CN=([^,]*),OU=Users.*$/$1/U,RULE:^CN=[^,]*,O=.*$/$0/",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tls_endpoint, "kernel_encrypts", lambda: request.param == "socket")
        with visible_broker(directory / "data", settings) as broker:
            yield broker


@pytest.fixture
def client(running: VisibleBroker, authority: Authority) -> Iterator[TlsRawClient]:
    with TlsRawClient(running.port, context_of(authority)) as client:
        yield client


def plain_port(broker: Broker) -> int:
    return next(endpoint.port for endpoint in broker.endpoints if endpoint.name == "PLAINTEXT")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.01)


# ---- data


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_large_fetch_arrives_whole(running: VisibleBroker, authority: Authority, version: str) -> None:
    """Many megabytes in one answer, to a slow reader, are the bytes that the plain listener gives."""
    context = context_of(authority, ssl_enabled_protocols=version)
    with (
        TlsRawClient(running.port, context) as client,
        RawClient("127.0.0.1", running.look(plain_port)) as plain,
    ):
        topic = new_topic(client)
        for number in range(24):
            data = os.urandom(1000) * (950 + number)
            assert produce_batch(client, topic, batch_of(data)).error_code == ErrorCode.NONE
        request = fetch_request(topic, partition_max_bytes=50_000_000)
        request.max_bytes = 50_000_000
        plain.send(FETCH, 12, request)
        expected = plain.receive_frame()
        client.send(FETCH, 12, request)
        (size,) = struct.unpack(">i", client.socket.recv(4))
        assert size == len(expected) > 20_000_000
        received = bytearray()
        while len(received) < size:
            received += client.socket.recv(200_000)
            if len(received) % 7 == 0:
                time.sleep(0.001)
        # All but the correlation id.
        assert received[4:] == expected[4:]
        # The connection goes on.
        assert client.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == ErrorCode.NONE


def test_a_large_batch_arrives_whole(client: TlsRawClient) -> None:
    topic = new_topic(client, max_message_bytes="20000000")
    data = os.urandom(8_000_000)
    batch = batch_of(data)
    assert produce_batch(client, topic, batch).error_code == ErrorCode.NONE
    records = fetch_partition(client, topic).records
    assert records is not None
    assert data in bytes(records)


def test_frames_in_many_small_records(client: TlsRawClient) -> None:
    frame = client.encode(API_VERSIONS, 0, ApiVersionsRequest(), 7)
    for byte in frame:
        client.send_bytes(bytes([byte]))
    assert client.receive(API_VERSIONS, 0)[0] == 7


def test_many_frames_in_large_records(client: TlsRawClient) -> None:
    """OpenSSL decrypts 16 KB at once, more than the first buffer of a connection holds."""
    frame = client.encode(API_VERSIONS, 0, ApiVersionsRequest(), 7)
    count = 20_000
    client.socket.settimeout(60)
    sent = memoryview(frame * count)
    while sent:
        client.send_bytes(bytes(sent[:300_000]))
        sent = sent[300_000:]
    answers = {bytes(client.receive_frame()) for _ in range(count)}
    assert len(answers) == 1, "each frame has the same answer"


def test_produces_that_arrive_together(client: TlsRawClient) -> None:
    """The short way of Produce, with frames of about the size of a TLS record."""
    topic = new_topic(client)
    frames = [
        client.encode(PRODUCE, 9, produce_request(topic, batch_of(os.urandom(16_000)), acks=1), number)
        for number in range(200)
    ]
    client.send_bytes(b"".join(frames))
    for number in range(200):
        correlation_id, response = client.receive(PRODUCE, 9)
        (partition,) = response.responses[0].partition_responses
        assert (correlation_id, partition.error_code, partition.base_offset) == (number, 0, number)


def test_a_peer_that_says_goodbye_is_forgotten(running: VisibleBroker, authority: Authority) -> None:
    with TlsRawClient(running.port, context_of(authority)) as client:
        client.call(API_VERSIONS, 0, ApiVersionsRequest())
        before = running.look(lambda broker: broker.server.connection_count)
        # Only TLS ends here, not the TCP connection.
        plain = client.tls.unwrap()
        until(lambda: running.look(lambda broker: broker.server.connection_count) == before - 1)
        plain.close()


# ---- who the peer is


def principals(broker: Broker) -> list[str]:
    return [str(connection.session.principal) for connection in broker.server._connections]


@pytest.mark.parametrize(
    ("subject", "principal"),
    [
        ("CN=alice,OU=Users,O=Example", "User:ALICE"),
        ("CN=bob,O=Example", "User:CN=bob,O=Example"),
        (None, "User:ANONYMOUS"),
    ],
)
def test_the_principal_of_a_certificate(
    running: VisibleBroker, authority: Authority, subject: str | None, principal: str
) -> None:
    until(lambda: running.look(principals) == [])
    issued = None if subject is None else authority.client(subject)
    with TlsRawClient(running.port, context_of(authority, issued)) as client:
        client.call(API_VERSIONS, 0, ApiVersionsRequest())
        assert running.look(principals) == [principal]


def failures(broker: Broker) -> int:
    return broker.server.failed_handshakes


@pytest.mark.parametrize("kind", ["foreign", "expired", "no rule fits"])
def test_certificates_that_are_refused(running: VisibleBroker, authority: Authority, kind: str) -> None:
    issued = {
        "foreign": Authority().client,
        "expired": authority.expired_client,
        "no rule fits": lambda: authority.client("O=Example"),
    }[kind]()
    before = running.look(failures)
    with TlsRawClient(running.port, context_of(authority, issued)) as client:
        assert client.refuses()
    assert running.look(failures) == before + 1


def test_a_certificate_is_required(tmp_path: Path, authority: Authority) -> None:
    settings = tls_listener(authority.server(), tmp_path) | pem_trust(authority)
    with visible_broker(tmp_path / "data", settings | {"ssl.client.auth": "required"}) as broker:
        with TlsRawClient(broker.port, context_of(authority)) as client:
            assert client.refuses()
        with pytest.raises(ssl.SSLError):
            TlsRawClient(broker.port, context_of(authority, ssl_enabled_protocols="TLSv1.2"))
        with TlsRawClient(broker.port, context_of(authority, authority.client("CN=carol"))) as client:
            client.call(API_VERSIONS, 0, ApiVersionsRequest())
            until(lambda: broker.look(principals) == ["User:CN=carol"])
        # The file has no rules: the subject itself is the name.
        assert broker.look(failures) == 2


# ---- peers that fail


def test_plain_bytes_on_a_tls_port(
    running: VisibleBroker, caplog: pytest.LogCaptureFixture, authority: Authority
) -> None:
    before = running.look(failures)
    running.look(lambda broker: broker.server._logged.clear())
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            with RawClient("127.0.0.1", running.port) as client:
                client.send(API_VERSIONS, 0, ApiVersionsRequest())
                assert client.is_closed_by_peer()
    assert running.look(failures) == before + 2
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "closed a connection from 127.0.0.1 to the listener SSL: it sent bytes that are not TLS "
        "(logged once per host)"
    ]


def test_tls_on_a_plain_port(
    running: VisibleBroker, caplog: pytest.LogCaptureFixture, authority: Authority
) -> None:
    running.look(lambda broker: broker.server._logged.clear())
    with caplog.at_level(logging.WARNING), pytest.raises((ssl.SSLError, ConnectionError)):
        TlsRawClient(running.look(plain_port), context_of(authority))
    (line,) = [record.getMessage() for record in caplog.records]
    assert "it speaks TLS, but this listener does not" in line


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
def test_an_old_version_is_refused(running: VisibleBroker) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    before = running.look(failures)
    with pytest.raises(ssl.SSLError, match=r"PROTOCOL_VERSION|protocol version"):
        TlsRawClient(running.port, context)
    assert running.look(failures) == before + 1


def test_a_handshake_that_ends_in_the_middle(running: VisibleBroker, authority: Authority) -> None:
    before = running.look(failures)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = context_of(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        end.do_handshake()
    hello = outgoing.read()
    for length in (1, 5, 50, len(hello)):
        with RawClient("127.0.0.1", running.port) as client:
            client.send_bytes(hello[:length])
            # Wait until the broker has looked at it.
            time.sleep(0.05)
    until(lambda: running.look(failures) == before + 4)
    until(lambda: running.look(principals) == [])


def test_a_look_at_the_port_is_no_failure(running: VisibleBroker) -> None:
    before = running.look(failures)
    RawClient("127.0.0.1", running.port).close()
    until(lambda: running.look(principals) == [])
    assert running.look(failures) == before


@pytest.mark.parametrize("sent", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"])
def test_a_slow_handshake_ends_at_its_deadline(
    running: VisibleBroker, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(tls_connection, "HANDSHAKE_SECONDS_MAX", 0.2)
    before = running.look(failures)
    with RawClient("127.0.0.1", running.port) as client:
        client.send_bytes(sent)
        assert client.is_closed_by_peer()
    assert running.look(failures) == before + 1


def test_garbage_in_place_of_a_handshake(running: VisibleBroker) -> None:
    before = running.look(failures)
    for tail in (os.urandom(100), b"\x03\x01\xff\xff" + os.urandom(70_000)):
        with RawClient("127.0.0.1", running.port) as client:
            client.send_bytes(b"\x16" + tail)
            with contextlib.suppress(ConnectionError):
                while client.socket.recv(100):
                    pass
    assert running.look(failures) == before + 2


@pytest.mark.parametrize("sent", [os.urandom(50), b"\x17\x03\x03\x00\x20" + bytes(32)], ids=["any", "record"])
def test_bytes_after_the_handshake_that_nobody_encrypted(
    running: VisibleBroker, authority: Authority, sent: bytes
) -> None:
    with TlsRawClient(running.port, context_of(authority)) as client:
        client.call(API_VERSIONS, 0, ApiVersionsRequest())
        with socket.socket(fileno=os.dup(client.socket.fileno())) as below:
            below.sendall(sent)
        assert client.refuses()


def test_a_recorded_session_cannot_be_replayed(running: VisibleBroker, authority: Authority) -> None:
    """Everything that a client sent, sent once more by somebody else, is not understood."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = context_of(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
    recorded = []
    with RawClient("127.0.0.1", running.port) as first:
        while True:
            try:
                end.do_handshake()
                break
            except ssl.SSLWantReadError:
                recorded.append(outgoing.read())
                first.send_bytes(recorded[-1])
                incoming.write(first.socket.recv(100_000))
        end.write(first.encode(API_VERSIONS, 0, ApiVersionsRequest(), 1))
        recorded.append(outgoing.read())
        first.send_bytes(recorded[-1])
        assert first.socket.recv(100)
    before = running.look(failures)
    with RawClient("127.0.0.1", running.port) as second:
        second.send_bytes(recorded[0])
        assert second.socket.recv(100_000)
        second.send_bytes(b"".join(recorded[1:]))
        until(lambda: running.look(failures) == before + 1)


def test_no_connection_stays_after_failures(running: VisibleBroker) -> None:
    until(lambda: running.look(lambda broker: broker.server.connection_count) == 0)
    assert running.look(lambda broker: broker.server.limits._per_host) == {}


# ---- other certificates


def shown(port: int, authority: Authority) -> int:
    """The serial number of the certificate that a new connection gets."""
    with TlsRawClient(port, context_of(authority)) as client:
        certificate = client.tls.getpeercert(binary_form=True)
        assert certificate is not None
        return x509.load_der_x509_certificate(certificate).serial_number


def replace(path: Path, text: str) -> None:
    """As tools that renew certificates do it."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_new_files_are_taken(
    tmp_path: Path,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(tls_endpoint, "FILES_SECONDS", 0.02)
    first, second = authority.server(), authority.server()
    path = tmp_path / "server.pem"
    with (
        caplog.at_level(logging.INFO),
        visible_broker(tmp_path / "data", tls_listener(first, tmp_path)) as broker,
        TlsRawClient(broker.port, context_of(authority)) as old,
    ):
        assert shown(broker.port, authority) == first.certificate.serial_number
        for bad, sentence in (
            ("no key here", "must have one private key"),
            (first.key_pem() + second.chain_pem, "does not belong to its first certificate"),
            (other_subject(authority), "ssl.allow.dn.changes=true"),
            (fewer_names(authority), "ssl.allow.san.changes=true"),
        ):
            replace(path, bad)
            until(lambda sentence=sentence: sentence in caplog.text)
            assert shown(broker.port, authority) == first.certificate.serial_number
        replace(path, second.key_pem() + second.chain_pem)
        until(lambda: "new connections get the new certificates" in caplog.text)
        assert shown(broker.port, authority) == second.certificate.serial_number
        # A connection that was open before goes on.
        assert old.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == ErrorCode.NONE


def other_subject(authority: Authority) -> str:
    issued = authority.client("CN=somebody-else")
    return issued.key_pem() + issued.chain_pem


def fewer_names(authority: Authority) -> str:
    issued = authority.server("localhost")
    return issued.key_pem() + issued.chain_pem


def test_certificates_change_with_the_settings(tmp_path: Path, authority: Authority) -> None:
    first, second = authority.server(), authority.server()
    with visible_broker(tmp_path / "data", tls_listener(first, tmp_path)) as broker:
        location = second.write_pem(tmp_path / "second.pem")
        with RawClient("127.0.0.1", broker.look(plain_port)) as admin:
            own = "listener.name.ssl.ssl.keystore"
            for bad, sentence in (
                ({f"{own}.location": "/no/such/file"}, "cannot be read"),
                ({f"{own}.location": str(write(tmp_path, other_subject(authority)))}, "ssl.allow.dn.changes"),
                ({f"{own}.type": "PKCS12"}, "ssl.keystore.password"),
                ({"ssl.keystore.location": location}, "listener.name.<listener>.ssl.keystore.location"),
            ):
                code, message = alter(admin, dict(bad), "1")
                assert code == ErrorCode.INVALID_REQUEST
                assert message is not None and sentence in message
            assert shown(broker.port, authority) == first.certificate.serial_number
            assert alter(admin, {f"{own}.location": location}, "1") == (0, None)
            until(lambda: shown(broker.port, authority) == second.certificate.serial_number)
            assert alter(admin, {"ssl.enabled.protocols": "TLSv1.2"}, "1") == (0, None)
            with TlsRawClient(broker.port, context_of(authority)) as client:
                assert client.tls.version() == "TLSv1.2"
            assert alter(admin, {f"{own}.location": None, "ssl.enabled.protocols": None}, "1") == (0, None)
            until(lambda: shown(broker.port, authority) == first.certificate.serial_number)


def write(directory: Path, text: str) -> Path:
    path = directory / "other.pem"
    path.write_text(text)
    return path


def test_clients_may_be_asked_for_certificates_from_now_on(tmp_path: Path, authority: Authority) -> None:
    settings = tls_listener(authority.server(), tmp_path) | {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.write_pem(tmp_path / "ca.pem"),
    }
    with visible_broker(tmp_path / "data", settings) as broker:
        with RawClient("127.0.0.1", broker.look(plain_port)) as admin:
            assert alter(admin, {"listener.name.ssl.ssl.client.auth": "required"}, "1") == (0, None)
        with TlsRawClient(broker.port, context_of(authority)) as client:
            assert client.refuses()
        with TlsRawClient(broker.port, context_of(authority, authority.client())) as client:
            assert client.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == ErrorCode.NONE


def test_a_tls_listener_is_added_while_the_broker_runs(tmp_path: Path, authority: Authority) -> None:
    port = free_ports(1)[0]
    advertised = {"advertised.listeners": "PLAINTEXT://127.0.0.1:0"}
    with (
        visible_broker(tmp_path / "data", advertised) as broker,
        RawClient("127.0.0.1", broker.port) as admin,
    ):
        changes: dict[str, str | None] = {"listeners": f"PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:{port}"}
        code, message = alter(admin, changes, "1")
        assert code == ErrorCode.INVALID_REQUEST
        assert message is not None and "A TLS listener needs a key" in message
        issued = authority.server()
        changes |= {
            "listener.name.ssl.ssl.keystore.type": "PEM",
            "listener.name.ssl.ssl.keystore.location": issued.write_pem(tmp_path / "server.pem"),
        }
        assert alter(admin, changes, "1") == (0, None)
        until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
        assert shown(port, authority) == issued.certificate.serial_number
        assert alter(admin, dict.fromkeys(changes), "1") == (0, None)
