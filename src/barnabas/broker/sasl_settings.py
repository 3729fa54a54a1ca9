"""The settings of SASL for one listener, checked when a broker starts or gets a new listener.

    listener.name.<listener>.sasl.enabled.mechanisms, or sasl.enabled.mechanisms
    listener.name.<listener>.<mechanism>.sasl.jaas.config

`<listener>` and `<mechanism>` are written in lower case, as in Kafka."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from barnabas.config.broker import BROKER_KEYS
from barnabas.config.definition import ConfigError
from barnabas.config.parsing import parse
from barnabas.security.jaas import JaasError, parse_jaas
from barnabas.security.sasl.server import MECHANISMS, OAUTHBEARER, PLAIN

if TYPE_CHECKING:
    from barnabas.broker.jwks import OAuthSettings
    from barnabas.config.listeners import Listener
    from barnabas.config.values import BrokerConfig

GSSAPI = "GSSAPI"
ENABLED = "sasl.enabled.mechanisms"
JAAS = "sasl.jaas.config"
REAUTHENTICATION = "connections.max.reauth.ms"
CALLBACK_HANDLER = "sasl.server.callback.handler.class"
KAFKAS_OWN = "org.apache.kafka.common.security."
OAUTH_PREFIX = "sasl.oauthbearer."
USER_PREFIX = "user_"
# The mechanisms whose clients send a secret as it is.
_SHOWN_SECRETS = {PLAIN: "PASSWORDS", OAUTHBEARER: "TOKENS"}


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """`session_ms` has the longest session of each mechanism; 0 is without end."""

    mechanisms: tuple[str, ...]
    passwords: Mapping[str, str] = field(repr=False)
    session_ms: Mapping[str, int]
    receive_bytes_max: int
    failure_delay_seconds: float
    oauth: OAuthSettings | None = None


def uses_sasl(listener: Listener) -> bool:
    return listener.protocol.startswith("SASL_")


def sasl_settings(config: BrokerConfig, listener: Listener) -> SaslSettings:
    """The settings of this listener; ConfigError if it cannot be served with them."""
    mechanisms = _mechanisms(config, listener)
    for mechanism in mechanisms:
        _refuse_plug_in(config, listener, mechanism)
    return SaslSettings(
        mechanisms,
        _passwords(config, listener) if PLAIN in mechanisms else {},
        {name: _session_ms(config, listener, name) for name in mechanisms},
        config["sasl.server.max.receive.size"],
        config["connection.failed.authentication.delay.ms"] / 1000,
        _oauth_settings(config, listener) if OAUTHBEARER in mechanisms else None,
    )


def check_sasl(config: BrokerConfig) -> None:
    """ConfigError if a listener with SASL cannot be served."""
    for listener in config.listeners:
        if uses_sasl(listener):
            sasl_settings(config, listener)
    between_brokers = config.inter_broker_listener
    if config["zookeeper.connect"] is None or not uses_sasl(between_brokers):
        return
    mechanism = _text(config, between_brokers, "sasl.mechanism.inter.broker.protocol")
    if mechanism not in _mechanisms(config, between_brokers):
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol is {mechanism}, which is not enabled for the listener "
            f"{between_brokers.name}: set it to one of its sasl.enabled.mechanisms."
        )


def exposed_secrets(settings: SaslSettings, listener: Listener) -> list[str]:
    """What crosses a network as plain text and lets everybody who reads it log in."""
    if listener.protocol != "SASL_PLAINTEXT" or _is_local(listener.host):
        return []
    return [secret for mechanism, secret in _SHOWN_SECRETS.items() if mechanism in settings.mechanisms]


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listener_key(listener: Listener, key: str, mechanism: str | None = None) -> str:
    """The name of a key for this listener only, or for one of its mechanisms only."""
    prefix = "" if mechanism is None else f"{mechanism.lower()}."
    return f"listener.name.{listener.name.lower()}.{prefix}{key}"


def _given(config: BrokerConfig, name: str) -> str | None:
    layers = (config.broker_dynamic, config.cluster_dynamic, config.properties)
    return next((layer[name] for layer in layers if name in layer), None)


def _text(config: BrokerConfig, listener: Listener, key: str) -> str:
    own = _given(config, listener_key(listener, key))
    return str(config[key]) if own is None else own.strip()


def _mechanisms(config: BrokerConfig, listener: Listener) -> tuple[str, ...]:
    own = _given(config, listener_key(listener, ENABLED))
    names: tuple[str, ...] = config[ENABLED] if own is None else parse(BROKER_KEYS[ENABLED], own)
    choice = ", ".join(MECHANISMS)
    if GSSAPI in names:
        raise ConfigError(
            f"The listener {listener.name} asks for GSSAPI (Kerberos), which is not served: "
            f"set {ENABLED} to one or more of {choice}."
        )
    unknown = [name for name in names if name not in MECHANISMS]
    if unknown or not names:
        raise ConfigError(
            f"The listener {listener.name} needs {ENABLED} with one or more of {choice}"
            + (f"; {unknown[0]} is not served." if unknown else ".")
        )
    return tuple(dict.fromkeys(names))


def _passwords(config: BrokerConfig, listener: Listener) -> dict[str, str]:
    """The users of PLAIN: the options `user_<name>="<password>"` of its login module."""
    key = listener_key(listener, JAAS, PLAIN)
    text = _given(config, key)
    if text is None:
        raise ConfigError(
            f"The listener {listener.name} takes PLAIN, but has no users: set {key} to "
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'user_<name>="<password>";'
        )
    try:
        options = parse_jaas(text).options
    except JaasError as error:
        raise ConfigError(f"{key} is wrong: {error}") from None
    return {
        name.removeprefix(USER_PREFIX): value
        for name, value in options.items()
        if name.startswith(USER_PREFIX) and name != USER_PREFIX and value
    }


def _refuse_plug_in(config: BrokerConfig, listener: Listener, mechanism: str) -> None:
    """A file that lets Java code of its own decide who may log in must not start a broker that decides it."""
    key = listener_key(listener, CALLBACK_HANDLER, mechanism)
    if not (_given(config, key) or KAFKAS_OWN).startswith(KAFKAS_OWN):
        raise ConfigError(f"{key} names a Java class, which cannot be loaded: remove it.")


def _oauth_settings(config: BrokerConfig, listener: Listener) -> OAuthSettings:
    # Only listeners with OAUTHBEARER need the libraries that this imports.
    from barnabas.broker.jwks import OAuthSettings, check_address
    from barnabas.security.sasl.oauth import TokenRules

    def value(name: str) -> Any:
        key = f"{OAUTH_PREFIX}{name}"
        own = _given(config, listener_key(listener, key))
        return config[key] if own is None else parse(BROKER_KEYS[key], own)

    url = value("jwks.endpoint.url")
    if not url:
        raise ConfigError(
            f"The listener {listener.name} takes OAUTHBEARER, but nothing can verify its tokens: set "
            f"{OAUTH_PREFIX}jwks.endpoint.url to the address or the file with the keys of the provider."
        )
    check_address(url)
    rules = TokenRules(
        tuple(value("expected.audience")),
        value("expected.issuer"),
        value("clock.skew.seconds"),
        value("sub.claim.name"),
        value("scope.claim.name"),
    )
    return OAuthSettings(
        url,
        rules,
        value("jwks.endpoint.refresh.ms") / 1000,
        value("jwks.endpoint.retry.backoff.ms") / 1000,
        value("jwks.endpoint.retry.backoff.max.ms") / 1000,
    )


def _session_ms(config: BrokerConfig, listener: Listener, mechanism: str) -> int:
    for name in (
        listener_key(listener, REAUTHENTICATION, mechanism),
        listener_key(listener, REAUTHENTICATION),
    ):
        text = _given(config, name)
        if text is not None:
            return int(parse(BROKER_KEYS[REAUTHENTICATION], text))
    return int(config[REAUTHENTICATION])
