"""Certificates of our own authority: what OpenSSL accepts and refuses."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

from barnabas.security.certificates import KeyPair, issue, make_authority


def _context(purpose: ssl.Purpose, own: KeyPair | None, authority: KeyPair, tmp_path: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(purpose, cadata=authority.certificate.decode())
    if own is not None:
        path = tmp_path / f"{purpose.name}.pem"
        path.write_bytes(own.key + own.certificate)
        context.load_cert_chain(path)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _subject(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> object:
    """The subject of the client's certificate that a server sees."""
    left, right = socket.socketpair()
    seen: list[object] = []

    def serve() -> None:
        try:
            with server.wrap_socket(left, server_side=True) as connection:
                seen.append(connection.getpeercert())
        except OSError as error:
            seen.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(right, server_hostname=host):
            thread.join()
    finally:
        right.close()
        thread.join()
        left.close()
    return seen[0]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_server_and_client_accept_each_other(tmp_path: Path, host: str) -> None:
    authority = make_authority("an authority")
    server = _context(
        ssl.Purpose.CLIENT_AUTH, issue(authority, "broker", ["localhost", "127.0.0.1"]), authority, tmp_path
    )
    client = _context(ssl.Purpose.SERVER_AUTH, issue(authority, "alice"), authority, tmp_path)
    subject = _subject(server, client, host)
    assert isinstance(subject, dict)
    assert subject["subject"] == ((("commonName", "alice"),),)


def test_another_host_or_authority_is_refused(tmp_path: Path) -> None:
    authority = make_authority("an authority")
    server = _context(ssl.Purpose.CLIENT_AUTH, issue(authority, "broker", ["localhost"]), authority, tmp_path)
    client = _context(ssl.Purpose.SERVER_AUTH, issue(authority, "alice"), authority, tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        _subject(server, client, "elsewhere")
    stranger = _context(ssl.Purpose.SERVER_AUTH, None, make_authority("an authority"), tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        _subject(server, stranger, "localhost")


def test_a_key_is_not_shown() -> None:
    pair = make_authority("an authority")
    assert b"PRIVATE KEY" in pair.key
    assert "PRIVATE KEY" not in repr(pair)
