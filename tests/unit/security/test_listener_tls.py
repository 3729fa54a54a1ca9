"""TLS settings of listeners: their own, those of all, and what is refused at start."""

from pathlib import Path

import pytest
from tests.support.certificates import Authority

from barnabas.broker.startup import broker_config
from barnabas.config.definition import ConfigError
from barnabas.config.values import BrokerConfig
from barnabas.security.listener_tls import listener_tls

LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0,LOGIN://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SSL,LOGIN:SASL_SSL",
}


def test_a_listener_has_its_own_settings_before_those_of_all() -> None:
    config = BrokerConfig(
        {
            **LISTENERS,
            "ssl.keystore.location": "/all.p12",
            "ssl.keystore.password": "all",
            "ssl.enabled.protocols": "TLSv1.2",
            "listener.name.inside.ssl.keystore.location": "/inside.p12",
            "listener.name.INSIDE.ssl.keystore.password": "not-this-one",
        }
    )
    plain, inside, login = config.listeners
    assert (plain.uses_tls, inside.uses_tls, login.uses_tls) == (False, True, True)
    assert (inside.uses_sasl, login.uses_sasl) == (False, True)
    assert listener_tls(config, inside).key_store.location == "/inside.p12"
    assert listener_tls(config, inside).key_store.password == "all"
    assert listener_tls(config, inside).enabled_protocols == ("TLSv1.2",)
    assert listener_tls(config, login).key_store.location == "/all.p12"
    assert config.for_listener(inside)["ssl.enabled.protocols"] == ("TLSv1.2",)


def test_dynamic_settings_of_a_listener() -> None:
    file = BrokerConfig({**LISTENERS, "listener.name.inside.ssl.keystore.location": "/old.p12"})
    inside = file.listeners[1]
    new = file.with_dynamic({}, {"listener.name.inside.ssl.keystore.location": "/new.p12"})
    assert file.for_listener(inside)["ssl.keystore.location"] == "/old.p12"
    assert new.for_listener(inside)["ssl.keystore.location"] == "/new.p12"
    # What is set for one listener counts more than what is set for all, also if that is dynamic.
    general = file.with_dynamic({}, {"ssl.keystore.location": "/all.p12"})
    assert general.for_listener(inside)["ssl.keystore.location"] == "/old.p12"


def test_keys_of_a_mechanism() -> None:
    key = "scram-sha-256.sasl.jaas.config"
    config = BrokerConfig({**LISTENERS, f"listener.name.login.{key}": "secret;"})
    own = config.for_listener(config.listeners[2])
    assert own[key] == "secret;"
    assert own.is_own(key)
    assert key in own
    assert len(own) == len(config) + 1
    assert config.for_listener(config.listeners[1]).get(key) is None


@pytest.mark.parametrize(
    ("given", "inside", "login"),
    [
        ({"ssl.client.auth": "required"}, "required", "none"),
        ({"listener.name.login.ssl.client.auth": "required"}, "none", "required"),
    ],
)
def test_a_sasl_listener_asks_for_certificates_only_if_it_says_so(
    given: dict[str, str], inside: str, login: str
) -> None:
    config = BrokerConfig({**LISTENERS, **given})
    assert listener_tls(config, config.listeners[1]).client_auth == inside
    assert listener_tls(config, config.listeners[2]).client_auth == login


def test_which_settings_of_listeners_have_an_effect() -> None:
    config = BrokerConfig(
        {
            **LISTENERS,
            "listener.name.inside.ssl.keystore.location": "/a.p12",
            "listener.name.inside.num.network.threads": "3",
        }
    )
    assert config.without_effect == ["listener.name.inside.num.network.threads"]


def test_a_tls_listener_without_a_key_does_not_start() -> None:
    with pytest.raises(ConfigError, match=r"SSL://127.0.0.1:0 cannot be opened: .*ssl\.keystore\.location"):
        broker_config(
            None, overrides={"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}
        )


def test_a_tls_listener_with_a_key_starts(tmp_path: Path) -> None:
    location = Authority().server().write_pem(tmp_path / "server.pem")
    stores = {"ssl.keystore.type": "PEM", "ssl.keystore.location": location}
    listener = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}
    assert broker_config(None, overrides={**listener, **stores}).inter_broker_listener.protocol == "SSL"
