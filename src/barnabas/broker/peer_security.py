"""How this broker protects its connections to other brokers, and shows them who it is.

They use the listener between brokers, so its protocol and its settings hold: `listener.name.<listener>.<key>`
before `<key>`, and for SASL `listener.name.<listener>.<mechanism>.<key>` before both. The user is the one
that `username` and `password` of the mechanism's sasl.jaas.config name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.config.broker import BROKER_KEYS
from barnabas.config.definition import ConfigError
from barnabas.config.parsing import parse

if TYPE_CHECKING:
    from barnabas.config.values import BrokerConfig
    from barnabas.security.client_security import ClientSecurity

MECHANISM = "sasl.mechanism.inter.broker.protocol"
JAAS = "sasl.jaas.config"


def peer_security(config: Callable[[], BrokerConfig]) -> ClientSecurity | None:
    """None if brokers talk in plain text. `config` returns the current settings: those of TLS may change."""
    protocol = config().inter_broker_listener.protocol
    if protocol == "PLAINTEXT" or config()["zookeeper.connect"] is None:
        # A broker without a cluster connects to nobody.
        return None
    # Imported here: a broker without TLS and SASL starts faster without it.
    from barnabas.security.client_security import client_security

    def get(key: str) -> Any:
        if key == "security.protocol":
            return protocol
        return _client_value(config(), key)

    try:
        return client_security(get)
    except ConfigError as error:
        name = config().inter_broker_listener.name
        raise ConfigError(f"Brokers cannot reach each other over the listener {name}: {error}") from None


def _client_value(config: BrokerConfig, key: str) -> Any:
    prefix = f"listener.name.{config.inter_broker_listener.name.lower()}."
    mechanism = _given(config, prefix + MECHANISM) or config[MECHANISM]
    if key == "sasl.mechanism":
        return mechanism
    if key not in BROKER_KEYS:
        return None
    names = [f"{prefix}{mechanism.lower()}.{key}", prefix + key]
    text = next((found for name in names if (found := _given(config, name)) is not None), None)
    if text is not None:
        return parse(BROKER_KEYS[key], text)
    # As in Kafka, a login that is not of this listener does not count: it may be one of clients.
    return None if key == JAAS else config[key]


def _given(config: BrokerConfig, name: str) -> str | None:
    layers = (config.broker_dynamic, config.cluster_dynamic, config.properties)
    return next((layer[name] for layer in layers if name in layer), None)
