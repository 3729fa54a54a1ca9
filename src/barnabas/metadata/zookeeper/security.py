"""A protected ZooKeeper: connections over TLS, a user, and nodes that only this user may read and change."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.security import CREATOR_ALL_ACL

from barnabas.config.definition import ConfigError

if TYPE_CHECKING:
    from barnabas.security.tls import TlsSettings

# The keys of TLS, and those that ZooKeeper has for them.
_TLS_KEYS = {
    "ssl.keystore.location": "zookeeper.ssl.keystore.location",
    "ssl.keystore.password": "zookeeper.ssl.keystore.password",
    "ssl.keystore.type": "zookeeper.ssl.keystore.type",
    "ssl.truststore.location": "zookeeper.ssl.truststore.location",
    "ssl.truststore.password": "zookeeper.ssl.truststore.password",
    "ssl.truststore.type": "zookeeper.ssl.truststore.type",
    "ssl.protocol": "zookeeper.ssl.protocol",
    "ssl.enabled.protocols": "zookeeper.ssl.enabled.protocols",
    "ssl.cipher.suites": "zookeeper.ssl.cipher.suites",
    "ssl.endpoint.identification.algorithm": "zookeeper.ssl.endpoint.identification.algorithm",
}
_ENDINGS = {"pem": "PEM", "p12": "PKCS12", "pfx": "PKCS12", "jks": "JKS"}


@dataclass(frozen=True, slots=True)
class ZooKeeperSecurity:
    """`digest` is user:password. With `sets_acls`, new nodes belong to this user."""

    tls: TlsSettings | None = None
    digest: str | None = field(default=None, repr=False)
    sets_acls: bool = False

    def client_options(self) -> dict[str, Any]:
        """What kazoo's client needs."""
        options: dict[str, Any] = {}
        if self.tls is not None:
            options["handler"] = TlsHandler(self.tls)
        if self.digest is not None:
            options["auth_data"] = [("digest", self.digest)]
        if self.sets_acls:
            options["default_acl"] = CREATOR_ALL_ACL
        return options


class TlsHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Opens kazoo's connections over TLS with our own settings: kazoo's own know neither key stores nor the
    versions of TLS that are safe."""

    def __init__(self, settings: TlsSettings) -> None:
        super().__init__()
        from barnabas.security.tls import client_context

        self._context = client_context(settings)
        self.failure: str | None = None
        """Why the last TLS handshake failed."""

    def create_connection(
        self, address: tuple[str, int], hostname: str, timeout: float, **_: object
    ) -> ssl.SSLSocket:
        plain = socket.create_connection(address, timeout)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wrapped = self._context.wrap_socket(plain, server_hostname=hostname)
        except ssl.SSLError as error:
            plain.close()
            self.failure = f"TLS: {getattr(error, 'verify_message', None) or error.reason or error}"
            raise
        except BaseException:
            plain.close()
            raise
        self.failure = None
        return wrapped


def zookeeper_security(config: Mapping[str, Any]) -> ZooKeeperSecurity | None:
    """The security that Kafka's keys describe; None if ZooKeeper is not protected."""
    uses_tls, digest = config["zookeeper.ssl.client.enable"], config["barnabas.zookeeper.digest"]
    sets_acls = config["zookeeper.set.acl"]
    has_certificate = uses_tls and config["zookeeper.ssl.keystore.location"] is not None
    if sets_acls and digest is None and not has_certificate:
        raise ConfigError(
            "zookeeper.set.acl=true needs somebody to whom the nodes belong: set barnabas.zookeeper.digest, "
            "or zookeeper.ssl.client.enable=true and zookeeper.ssl.keystore.location."
        )
    if not uses_tls and digest is None:
        return None
    return ZooKeeperSecurity(_tls(config) if uses_tls else None, digest, sets_acls)


def _tls(config: Mapping[str, Any]) -> TlsSettings:
    from barnabas.security.tls import TlsError, TlsSettings, client_context

    def get(key: str) -> str | None:
        if key not in _TLS_KEYS:
            return None
        value = config[_TLS_KEYS[key]]
        if key == "ssl.enabled.protocols" and not value:
            value = config["zookeeper.ssl.protocol"]
        if key.endswith(".type") and value is None:
            location = config[_TLS_KEYS[key.replace(".type", ".location")]] or ""
            return _ENDINGS.get(location.rpartition(".")[2].lower())
        return ",".join(value) if isinstance(value, tuple) else value

    try:
        settings = TlsSettings.from_config(get)
        # Made once to see whether it can be.
        client_context(settings)
    except TlsError as error:
        raise ConfigError(f"ZooKeeper cannot be reached over TLS: {_renamed(str(error))}") from None
    return settings


def _renamed(sentence: str) -> str:
    """The sentence with the names of the keys as they are here."""
    return sentence.replace("ssl.", "zookeeper.ssl.")
