"""The security of a client's connections: TLS, and who the client is, from Kafka's keys.

`client_security(get)` is for all that connect to brokers: our clients, the command line, Spark, and brokers
among themselves. Besides the names of the Java client, it knows those of librdkafka that are common in Python
(`sasl.username`, `ssl.ca.location`, ...). A wrong combination is a ConfigError of one sentence."""

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from barnabas.config.definition import ConfigError
from barnabas.security.client_logins import Get, login_of
from barnabas.security.logins import Login
from barnabas.security.tls import TlsError, TlsSettings, client_context

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)

_log = logging.getLogger(__name__)
_Stamp: TypeAlias = tuple[tuple[int, int, int], ...]
# Files that librdkafka has keys for: the key of the file, and Kafka's key for the same text.
_FILES = {
    "ssl.ca.location": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
_TEXTS = {
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """`tls` is None without TLS, `login` is None without SASL."""

    protocol: str
    tls: "ClientTls | None"
    login: Login | None


class ClientTls:
    """Makes the context of connections, and makes it again when its settings or files have changed:
    certificates are replaced while clients and brokers run."""

    def __init__(self, get: Get) -> None:
        self._get = get
        self._made_from = self._state()
        self._context = self._made()

    def context(self) -> ssl.SSLContext:
        """The context for a new connection. If the new files cannot be used, the old context stays."""
        try:
            state = self._state()
            if state != self._made_from:
                self._made_from = state
                self._context = self._made()
        except ConfigError as error:
            _log.warning("the changed certificates of this client are not used: %s", error)
        return self._context

    def _state(self) -> tuple[TlsSettings, _Stamp]:
        try:
            settings = TlsSettings.from_config(_with_files(self._get))
        except TlsError as error:
            raise ConfigError(str(error)) from None
        return settings, _stamp_of(settings.files)

    def _made(self) -> ssl.SSLContext:
        try:
            return client_context(self._made_from[0])
        except TlsError as error:
            raise ConfigError(str(error)) from None


def client_security(get: Callable[[str], Any]) -> ClientSecurity | None:
    """The security that the keys describe; None for PLAINTEXT."""
    protocol = str(get("security.protocol") or PLAINTEXT).upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(
            f"security.protocol cannot be {protocol!r}: it must be one of {', '.join(PROTOCOLS)}."
        )
    if protocol == PLAINTEXT:
        if get("sasl.jaas.config") or get("sasl.password"):
            _log.warning("the sasl.* settings have no effect, because security.protocol is PLAINTEXT")
        return None
    login = login_of(get, protocol) if protocol in (SASL_PLAINTEXT, SASL_SSL) else None
    return ClientSecurity(protocol, ClientTls(get) if protocol in (SSL, SASL_SSL) else None, login)


def _with_files(get: Get) -> Callable[[str], str | None]:
    """The keys of TlsSettings, some of them from librdkafka's names."""
    given: dict[str, str] = {}
    for key, target in _TEXTS.items():
        if text := get(key):
            given[target] = text
    for key, target in _FILES.items():
        if location := get(key):
            given[target] = _read(key, location)
    if "ssl.truststore.certificates" in given:
        given["ssl.truststore.type"] = "PEM"
    if "ssl.keystore.key" in given or "ssl.keystore.certificate.chain" in given:
        given["ssl.keystore.type"] = "PEM"
    return lambda key: given.get(key) or _text(get(key))


def _text(value: Any) -> str | None:
    return ",".join(value) if isinstance(value, tuple) else value


def _read(key: str, location: str) -> str:
    try:
        return Path(location).read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"{key} names {location}, which cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{key} names {location}, which is not a PEM file.") from None


def _stamp_of(files: tuple[str, ...]) -> _Stamp:
    stamps = []
    for file in files:
        try:
            status = Path(file).stat()
            stamps.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except OSError:
            stamps.append((0, 0, 0))
    return tuple(stamps)
