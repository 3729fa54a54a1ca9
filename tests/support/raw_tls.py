"""A raw client over TLS, and the settings of brokers and clients with certificates made for a test."""

import ssl
from collections.abc import Mapping
from pathlib import Path

from tests.support.certificates import Authority, Issued
from tests.support.raw_client import TIMEOUT_SECONDS, RawClient

from barnabas.security.tls import TlsSettings, client_context


class TlsRawClient(RawClient):
    """A RawClient that trusts the authority, and shows a certificate if it has one."""

    def __init__(
        self, port: int, context: ssl.SSLContext, *, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        super().__init__("127.0.0.1", port, timeout_seconds=timeout_seconds)
        try:
            self.tls = context.wrap_socket(self.socket, server_hostname="localhost")
        except BaseException:
            self.close()
            raise
        self.socket = self.tls

    def refuses(self) -> bool:
        """Whether the broker ends the connection. With TLS 1.3 a client learns only after its own part of the
        handshake that its certificate was not accepted."""
        try:
            return self.socket.recv(1) == b""
        except (ssl.SSLError, ConnectionError):
            return True


def pem_key(issued: Issued) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": issued.key_pem(),
        "ssl.keystore.certificate.chain": issued.chain_pem,
    }


def pem_trust(authority: Authority) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority.pem}


def context_of(authority: Authority, issued: Issued | None = None, **settings: str) -> ssl.SSLContext:
    """A client's context; settings are written with underscores: ssl_enabled_protocols="TLSv1.2"."""
    values: Mapping[str, str] = {
        **pem_trust(authority),
        **(pem_key(issued) if issued is not None else {}),
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    return client_context(TlsSettings.from_config(values.get))


def tls_listener(issued: Issued, directory: Path, name: str = "server.pem") -> dict[str, str]:
    """Settings of a broker whose listener for clients is SSL; its key is in a file."""
    return {
        "listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": issued.write_pem(directory / name),
    }
