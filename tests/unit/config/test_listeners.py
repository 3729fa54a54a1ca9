"""Listeners, by Kafka's rules."""

import pytest

from barnabas.config.definition import ConfigError
from barnabas.config.listeners import Listener, parse_listeners, parse_protocol_map
from barnabas.config.values import BrokerConfig

PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "CLIENT": "SASL_SSL"}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("PLAINTEXT://host:9092", Listener("PLAINTEXT", "host", 9092, "PLAINTEXT")),
        ("client://10.0.0.1:0", Listener("CLIENT", "10.0.0.1", 0, "SASL_SSL")),
        ("PLAINTEXT://:9092", Listener("PLAINTEXT", "", 9092, "PLAINTEXT")),
        ("PLAINTEXT://[::1]:9092", Listener("PLAINTEXT", "::1", 9092, "PLAINTEXT")),
        ("PLAINTEXT://[fe80::1%eth0]:9092", Listener("PLAINTEXT", "fe80::1%eth0", 9092, "PLAINTEXT")),
    ],
)
def test_a_listener(item: str, expected: Listener) -> None:
    assert parse_listeners("listeners", [item], PROTOCOLS) == (expected,)
    assert parse_listeners("listeners", [str(expected)], PROTOCOLS) == (expected,)


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        (["host:9092"], "name://host:port"),
        (["://host:9092"], "name://host:port"),
        (["PLAINTEXT://host"], "name://host:port"),
        (["PLAINTEXT://ho st:1"], "name://host:port"),
        (["PLAINTEXT://host:65536"], "from 0 to 65535"),
        (["PLAINTEXT://host:-1"], "from 0 to 65535"),
        (["OTHER://host:1"], "gives it no protocol"),
        (["PLAINTEXT://a:1", "plaintext://b:2"], "two listeners named PLAINTEXT"),
        (["PLAINTEXT://a:1", "CLIENT://b:1"], "uses port 1 more than once"),
        (["PLAINTEXT://10.0.0.1:1", "CLIENT://10.0.0.2:1"], "uses port 1 more than once"),
    ],
)
def test_wrong_listeners_are_refused(items: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse_listeners("listeners", items, PROTOCOLS)


def test_a_port_may_be_shared_by_both_kinds_of_address_and_port_zero_by_all() -> None:
    shared = ["PLAINTEXT://127.0.0.1:1", "CLIENT://[::1]:1"]
    assert [listener.port for listener in parse_listeners("listeners", shared, PROTOCOLS)] == [1, 1]
    free = ["PLAINTEXT://a:0", "CLIENT://a:0"]
    assert [listener.port for listener in parse_listeners("listeners", free, PROTOCOLS)] == [0, 0]


def test_the_protocol_map() -> None:
    assert parse_protocol_map("client:sasl_ssl, PLAINTEXT:PLAINTEXT") == {
        "CLIENT": "SASL_SSL",
        "PLAINTEXT": "PLAINTEXT",
    }
    for text in ("client", "client:tls", ":SSL"):
        with pytest.raises(ConfigError, match="NAME:PROTOCOL"):
            parse_protocol_map(text)


def test_without_advertised_listeners_clients_get_the_listeners() -> None:
    config = BrokerConfig({"listeners": "PLAINTEXT://localhost:1"})
    assert config.advertised_listeners == config.listeners


def test_advertised_ports_may_repeat() -> None:
    config = BrokerConfig(
        {
            "listeners": "PLAINTEXT://:1,CLIENT://:2",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENT:PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://a:9,CLIENT://b:9",
        }
    )
    assert [listener.port for listener in config.advertised_listeners] == [9, 9]


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"listeners": "PLAINTEXT://0.0.0.0:1"}, "set advertised.listeners"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "set advertised.listeners"),
        ({"advertised.listeners": "SSL://a:1"}, "listeners has none named SSL"),
        (
            {"listeners": "CONTROLLER://:1", "controller.listener.names": "CONTROLLER"},
            "All listeners are in controller.listener.names",
        ),
        ({"inter.broker.listener.name": "SSL"}, "the advertised listeners are PLAINTEXT"),
        (
            {"listeners": "SSL://localhost:1"},
            "security.inter.broker.protocol names the listener PLAINTEXT",
        ),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "set one of them",
        ),
    ],
)
def test_listeners_that_do_not_fit_together_are_refused(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        BrokerConfig(properties)


def test_brokers_may_talk_over_a_listener_of_their_own() -> None:
    config = BrokerConfig(
        {
            "listeners": "CLIENT://:1,INSIDE://:2",
            "listener.security.protocol.map": "CLIENT:SSL,INSIDE:PLAINTEXT",
            "inter.broker.listener.name": "inside",
        }
    )
    assert config.inter_broker_listener.name == "INSIDE"
