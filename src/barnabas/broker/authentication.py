"""SASL: what the authenticators (authenticator.py) of a broker share: settings, credentials, keys, counts."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections import Counter
from typing import TYPE_CHECKING

from barnabas.broker.authenticator import Authenticator
from barnabas.broker.sasl_settings import SaslSettings, exposed_secrets, sasl_settings, uses_sasl
from barnabas.broker.scram_credentials import StoredCredentials
from barnabas.config.definition import ConfigError
from barnabas.net.connection import Connection, ConnectionOwner
from barnabas.security import scram
from barnabas.security.sasl.server import (
    OAUTHBEARER,
    PLAIN,
    PlainServerExchange,
    ScramServerExchange,
    ServerExchange,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.jwks import KeySource, OAuthSettings
    from barnabas.broker.session import Session
    from barnabas.config.listeners import Listener
    from barnabas.config.values import BrokerConfig

logger = logging.getLogger(__name__)

# Slow work, such as the key of a delegation token, uses at most this many threads.
SLOW_EXCHANGES_MAX = 2
# How many hosts are remembered as logged; after that they are logged again.
LOGGED_HOSTS_MAX = 10_000


class Authentication:
    """What the authenticators of a broker share: settings, credentials, and counts of what happened."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.secret = _secret(broker.config)
        # First ones of connections, and those before the end of a session (KIP-368).
        self.successes = 0
        self.repetitions = 0
        self.failures: Counter[str] = Counter()
        self.expired = 0
        self.slow_exchanges = asyncio.Semaphore(SLOW_EXCHANGES_MAX)
        self.credentials = StoredCredentials(broker)
        self._settings: dict[str, SaslSettings] = {}
        # Where the keys of each provider come from.
        self._keys: dict[OAuthSettings, KeySource] = {}

    def open(self, listener: Listener) -> None:
        """Take the settings of a listener that is about to be bound; ConfigError if they are wrong."""
        if not uses_sasl(listener):
            return
        settings = sasl_settings(self.broker.config, listener)
        if settings.oauth is not None:
            self._open_oauth(settings.oauth, listener)
        exposed = exposed_secrets(settings, listener)
        if exposed:
            logger.warning(
                "THE LISTENER %s TAKES %s AS PLAIN TEXT: everybody on the network between it and its "
                "clients can read them. Use SASL_SSL, or SCRAM-SHA-256 or SCRAM-SHA-512 alone.",
                listener,
                " AND ".join(exposed),
            )
        self._settings[listener.name] = settings

    def _open_oauth(self, settings: OAuthSettings, listener: Listener) -> None:
        from barnabas.broker.jwks import KeySource

        if settings not in self._keys:
            self._keys[settings] = KeySource(settings)
        if not settings.rules.audiences:
            logger.warning(
                "the listener %s takes tokens that were made for other services: set "
                "sasl.oauthbearer.expected.audience",
                listener,
            )

    def reconfigure(self) -> None:
        """Take changed settings. Connections that are open keep those that they began with."""
        for listener in self.broker.config.listeners:
            if listener.name in self._settings:
                try:
                    self.open(listener)
                except ConfigError as error:
                    logger.error("the listener %s keeps its SASL settings: %s", listener.name, error)

    def guard(self, connection: Connection, endpoint: ConnectionOwner) -> None:
        """A new connection: if its listener has SASL, its peer must authenticate first."""
        session: Session = connection.session
        settings = self._settings.get(session.listener.name)
        if settings is not None:
            Authenticator(self, settings, connection, endpoint).guard()
        elif uses_sasl(session.listener):
            # Cannot happen: `open` comes before `bind`. It must never mean that nobody has to authenticate.
            connection.close()

    def exchange(self, settings: SaslSettings, mechanism: str) -> ServerExchange:
        if mechanism == PLAIN:
            return PlainServerExchange(settings.passwords, self.secret)
        if settings.oauth is not None and mechanism == OAUTHBEARER:
            from barnabas.security.sasl.oauth import OAuthServerExchange

            keys, now_ms = self._keys[settings.oauth], self.broker.clock.now_ms
            return OAuthServerExchange(keys, settings.oauth.rules, now_ms)
        scram_mechanism = scram.BY_NAME[mechanism]
        return ScramServerExchange(scram_mechanism, self.credentials.of(scram_mechanism), self.secret)

    def failed(self, connection: Connection, reason: str) -> None:
        """Count a failure; the log has one line for each host."""
        host = connection.peer_host
        if len(self.failures) >= LOGGED_HOSTS_MAX and host not in self.failures:
            self.failures = Counter({"": self.failures.total()})
        self.failures[host] += 1
        if self.failures[host] == 1:
            logger.warning("authentication from %s failed: %s (logged once per host)", host, reason)


def _secret(config: BrokerConfig) -> bytes:
    """Makes the pretended salts of users who do not exist. If the brokers share a secret, the salts are the
    same on all of them and after a restart: otherwise they would tell such users from others."""
    shared = config["delegation.token.secret.key"] or config["password.encoder.secret"]
    if not shared:
        return secrets.token_bytes(32)
    return hmac.digest(shared.encode(), b"salts of users who do not exist", "sha256")
