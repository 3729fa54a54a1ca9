"""How a broker shows other brokers who it is: the settings of the listener between brokers."""

from pathlib import Path

import pytest
from tests.support.certificates import Authority

from barnabas.broker.peers import peer_settings
from barnabas.config.definition import ConfigError
from barnabas.config.values import BrokerConfig
from barnabas.security.logins import PasswordLogin

AUTHORITY = Authority()
PREFIX = "listener.name.internal."
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def config_of(protocol: str, **more: str) -> BrokerConfig:
    return BrokerConfig(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,INTERNAL://127.0.0.1:0",
            "advertised.listeners": "PLAINTEXT://127.0.0.1:1,INTERNAL://127.0.0.1:2",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,INTERNAL:{protocol}",
            "inter.broker.listener.name": "INTERNAL",
            "zookeeper.connect": "localhost:2181",
            **more,
        }
    )


def security(config: BrokerConfig) -> object:
    return peer_settings(lambda: config).security


def test_a_plain_listener_needs_nothing() -> None:
    assert security(config_of("PLAINTEXT")) is None


def test_a_broker_of_its_own_connects_to_nobody() -> None:
    config = config_of("SASL_PLAINTEXT")
    properties = {name: text for name, text in config.properties.items() if name != "zookeeper.connect"}
    assert security(BrokerConfig(properties)) is None


def test_the_login_is_that_of_the_listener_and_its_mechanism() -> None:
    jaas = f'{MODULE} required username="broker" password="secret";'
    config = config_of(
        "SASL_PLAINTEXT",
        **{
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            f"{PREFIX}sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            f"{PREFIX}plain.sasl.jaas.config": "x.PlainLoginModule required;",
            f"{PREFIX}scram-sha-512.sasl.jaas.config": jaas,
        },
    )
    made = peer_settings(lambda: config).security
    assert made is not None and made.tls is None
    assert made.login == PasswordLogin("SCRAM-SHA-512", "broker", "secret")


def test_a_missing_login_is_one_clear_sentence() -> None:
    mechanism = {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"}
    of_clients = {"sasl.jaas.config": f'{MODULE} required username="alice" password="s3cret";'}
    with pytest.raises(ConfigError, match=r"over the listener INTERNAL: .*needs a username") as caught:
        security(config_of("SASL_PLAINTEXT", **mechanism, **of_clients))
    assert "s3cret" not in str(caught.value)


def test_certificates_may_change_while_the_broker_runs(tmp_path: Path) -> None:
    (tmp_path / "one.pem").write_text(AUTHORITY.pem)
    (tmp_path / "two.pem").write_text(Authority("CN=Other").pem)
    names = {f"{PREFIX}ssl.truststore.type": "PEM", "ssl.truststore.location": "/not/this/one"}

    def trusting(file: str) -> BrokerConfig:
        return config_of("SSL", **names, **{f"{PREFIX}ssl.truststore.location": str(tmp_path / file)})

    current = trusting("one.pem")
    made = peer_settings(lambda: current).security
    assert made is not None and made.tls is not None and made.login is None
    first = made.tls.context()
    assert made.tls.context() is first
    current = trusting("two.pem")
    second = made.tls.context()
    assert second is not first and second.get_ca_certs() != first.get_ca_certs()
    (tmp_path / "two.pem").write_text(AUTHORITY.pem)
    assert made.tls.context().get_ca_certs() == first.get_ca_certs()
