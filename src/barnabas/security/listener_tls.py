"""TLS of a broker's listeners: from its configuration to the settings of each of them."""

from collections.abc import Iterable

from barnabas.config.definition import ConfigError
from barnabas.config.listeners import Listener
from barnabas.config.values import BrokerConfig
from barnabas.security.identity import check_same_identity
from barnabas.security.tls import TlsError, TlsSettings, load_server, server_context

CLIENT_AUTH = "ssl.client.auth"


def listener_tls(config: BrokerConfig, listener: Listener) -> TlsSettings:
    """The settings of a listener that uses TLS; TlsError if they contradict each other."""
    own = config.for_listener(listener)

    def text(name: str) -> str | None:
        if name == CLIENT_AUTH and listener.uses_sasl and not own.is_own(name):
            # As in Kafka: SASL says who a client is. It asks for certificates only if it says so itself.
            return "none"
        return own.text(name)

    return TlsSettings.from_config(text)


def check_tls(config: BrokerConfig, listeners: Iterable[Listener]) -> None:
    """ConfigError if the stores of one of these listeners cannot be used."""
    for listener in listeners:
        if listener.uses_tls:
            try:
                server_context(listener_tls(config, listener))
            except TlsError as error:
                raise _cannot_open(listener, error) from None


def check_tls_change(old: BrokerConfig, new: BrokerConfig) -> None:
    """ConfigError if a listener would get stores that cannot be used, or another broker's certificate."""
    for listener in new.listeners:
        if not listener.uses_tls:
            continue
        try:
            settings = listener_tls(new, listener)
            if listener not in old.listeners:
                server_context(settings)
            elif settings != listener_tls(old, listener):
                check_identity(new, listener, _old_chain(old, listener), load_server(settings)[1])
        except TlsError as error:
            raise _cannot_open(listener, error) from None


def check_identity(config: BrokerConfig, listener: Listener, old_chain: str | None, new_chain: str) -> None:
    """TlsError if the certificate of a listener may not change in this way."""
    if old_chain is None:
        return
    own = config.for_listener(listener)
    check_same_identity(
        old_chain,
        new_chain,
        may_change_subject=own["ssl.allow.dn.changes"],
        may_change_names=own["ssl.allow.san.changes"],
    )


def _old_chain(old: BrokerConfig, listener: Listener) -> str | None:
    try:
        return load_server(listener_tls(old, listener))[1]
    except TlsError:
        # The old files are gone; there is nothing to compare with.
        return None


def _cannot_open(listener: Listener, error: TlsError) -> ConfigError:
    return ConfigError(f"The listener {listener} cannot be opened: {error}")
