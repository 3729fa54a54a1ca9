"""TLS as clients see it, on brokers in processes of their own: other libraries, certificates that are not
accepted, and peers that do not speak TLS as they should."""

import os
import socket
import ssl
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.security.tls_clients import CLIENTS, Copy, Unreachable, client_files
from tests.support.certificates import PASSWORD, Authority
from tests.support.raw_calls import FETCH, batch_of, fetch_request, new_topic, produce_batch
from tests.support.raw_client import RawClient
from tests.support.raw_tls import TlsRawClient, context_of

from barnabas.testing import Broker
from barnabas.wire.messages.api_versions import ApiVersionsRequest

VALUES = [os.urandom(2000) for _ in range(300)] + [os.urandom(900_000)] * 3
# As net/tls_connection.py says.
HANDSHAKE_SECONDS = 10.0

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Broker]:
    """A broker with TLS only; clients may show certificates."""
    directory = tmp_path_factory.mktemp("stores")
    (directory / "trust.p12").write_bytes(authority.pkcs12())
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.location": authority.server().write_pkcs12(directory / "server.p12"),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.location": str(directory / "trust.p12"),
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.password": PASSWORD,
        "ssl.client.auth": "requested",
        "message.max.bytes": "2000000",
    }
    with Broker(settings, subprocess=True) as broker:
        yield broker
        output = broker.output()
        assert "Traceback" not in output, output
        assert PASSWORD not in output


@pytest.fixture(scope="module")
def strict_broker(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Broker]:
    """A broker that lets in only clients with a certificate."""
    directory = tmp_path_factory.mktemp("strict")
    settings = {
        "listeners": "CLIENTS://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SSL",
        "inter.broker.listener.name": "CLIENTS",
        "listener.name.clients.ssl.keystore.type": "PEM",
        "listener.name.clients.ssl.keystore.location": authority.server().write_pem(directory / "server.pem"),
        "listener.name.clients.ssl.truststore.type": "PEM",
        "listener.name.clients.ssl.truststore.location": authority.write_pem(directory / "ca.pem"),
        "listener.name.clients.ssl.client.auth": "required",
        "message.max.bytes": "2000000",
    }
    with Broker(settings, subprocess=True) as broker:
        yield broker
        assert "Traceback" not in broker.output(), broker.output()


def new_name() -> str:
    return f"tls-{uuid.uuid4().hex[:8]}"


# ---- clients


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_writes_and_reads(broker: Broker, authority: Authority, tmp_path: Path, client: str) -> None:
    files = client_files(tmp_path, authority)
    assert CLIENTS[client](broker.bootstrap, files, new_name(), VALUES) == VALUES


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_shows_its_certificate(
    strict_broker: Broker, authority: Authority, tmp_path: Path, client: str
) -> None:
    copy: Copy = CLIENTS[client]
    known = client_files(tmp_path / "known", authority, authority.client())
    assert copy(strict_broker.bootstrap, known, new_name(), VALUES[:10]) == VALUES[:10]
    with pytest.raises(Unreachable):
        copy(strict_broker.bootstrap, client_files(tmp_path / "none", authority), new_name(), [b"x"])


@pytest.mark.parametrize("kind", ["foreign", "expired"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_certificate_of_a_client_is_not_accepted(
    strict_broker: Broker, authority: Authority, tmp_path: Path, client: str, kind: str
) -> None:
    issued = Authority().client() if kind == "foreign" else authority.expired_client()
    files = client_files(tmp_path, authority, issued)
    with pytest.raises(Unreachable):
        CLIENTS[client](strict_broker.bootstrap, files, new_name(), [b"x"])


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_trusts_another_authority(broker: Broker, tmp_path: Path, client: str) -> None:
    files = client_files(tmp_path, Authority())
    with pytest.raises(Unreachable):
        CLIENTS[client](broker.bootstrap, files, new_name(), [b"x"])


@pytest.mark.parametrize("client", CLIENTS)
def test_a_broker_with_an_expired_certificate(authority: Authority, tmp_path: Path, client: str) -> None:
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.expired_server().write_pem(tmp_path / "server.pem"),
    }
    with Broker(settings) as broker, pytest.raises(Unreachable):
        CLIENTS[client](broker.bootstrap, client_files(tmp_path / "client", authority), new_name(), [b"x"])


# ---- raw connections


def is_served(broker: Broker, authority: Authority) -> bool:
    with TlsRawClient(broker.port, context_of(authority)) as client:
        return bool(client.call(18, 0, ApiVersionsRequest()).error_code == 0)


def test_a_fetch_of_many_megabytes(broker: Broker, authority: Authority) -> None:
    with TlsRawClient(broker.port, context_of(authority)) as client:
        topic = new_topic(client)
        batches = [batch_of(os.urandom(1_500_000)) for _ in range(30)]
        for batch in batches:
            assert produce_batch(client, topic, batch).error_code == 0
        request = fetch_request(topic, partition_max_bytes=100_000_000)
        request.max_bytes = 100_000_000
        response = client.call(FETCH, 12, request)
        records = bytes(response.responses[0].partitions[0].records)
    # All but the offset and the epoch, which the broker sets.
    at = 0
    for batch in batches:
        assert records[at + 17 : at + len(batch)] == batch[17:]
        at += len(batch)
    assert at == len(records)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
def test_tls_1_1_is_refused(broker: Broker, authority: Authority) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"):
        TlsRawClient(broker.port, context)
    assert is_served(broker, authority)


def test_plain_bytes_are_refused_with_one_line_in_the_log(broker: Broker, authority: Authority) -> None:
    for _ in range(3):
        with RawClient("127.0.0.1", broker.port) as client:
            client.send(18, 0, ApiVersionsRequest())
            assert client.is_closed_by_peer()
    assert broker.output().count("(logged once per host)") == 1
    assert is_served(broker, authority)


def test_a_truncated_handshake(broker: Broker, authority: Authority) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = context_of(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        end.do_handshake()
    hello = outgoing.read()
    for length in range(0, len(hello), 40):
        with socket.create_connection(("127.0.0.1", broker.port)) as peer:
            peer.sendall(hello[:length])
    assert is_served(broker, authority)


def test_a_slow_handshake_ends_at_its_deadline(broker: Broker, authority: Authority) -> None:
    """A peer that sends a byte now and then holds a connection for ten seconds, not for ever."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", broker.port)) as peer:
        peer.settimeout(1)
        peer.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01")
        while True:
            assert time.monotonic() < began + 3 * HANDSHAKE_SECONDS
            try:
                peer.sendall(b"\x00")
                if peer.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
    assert time.monotonic() > began + HANDSHAKE_SECONDS / 2
    assert is_served(broker, authority)


def test_nothing_of_a_session_is_readable_on_the_wire(broker: Broker, authority: Authority) -> None:
    """What goes over the network has neither the topic's name nor the records."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = context_of(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
    wire = bytearray()
    with socket.create_connection(("127.0.0.1", broker.port)) as peer:
        peer.settimeout(10)

        def exchange() -> None:
            data = outgoing.read()
            wire.extend(data)
            peer.sendall(data)
            received = peer.recv(100_000)
            wire.extend(received)
            incoming.write(received)

        while True:
            try:
                end.do_handshake()
                break
            except ssl.SSLWantReadError:
                exchange()
        with RawClient.__new__(RawClient) as encoder:
            encoder.client_id, encoder.socket = "a-readable-client-id", socket.socket()
            end.write(encoder.encode(18, 0, ApiVersionsRequest(), 1))
        while True:
            exchange()
            try:
                assert end.read(100)
                break
            except ssl.SSLWantReadError:
                continue
    assert len(wire) > 1000
    assert b"a-readable-client-id" not in wire
