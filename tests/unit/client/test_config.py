"""The settings are Kafka's and typed; the error for a typo suggests the right key."""

from typing import Any

import pytest

from barnabas.client.config import admin_config, consumer_config, producer_config
from barnabas.client.errors import ConfigError
from barnabas.client.keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS
from barnabas.client.settings import AdminSettings, ConsumerSettings, ProducerSettings
from barnabas.config.definition import ConfigKey


def test_keywords_and_dicts_mean_the_same() -> None:
    by_keyword = producer_config(bootstrap_servers="a:1,b:2", linger_ms=7, enable_idempotence=False)
    by_dict = producer_config(
        {"bootstrap.servers": ["a:1", "b:2"], "linger.ms": "7", "enable.idempotence": "false"}
    )
    for config in (by_keyword, by_dict):
        assert config.servers == (("a", 1), ("b", 2))
        assert config["linger.ms"] == 7
        assert config.seconds("linger.ms") == 0.007
        assert config["enable.idempotence"] is False
        assert config.is_set("linger.ms") and not config.is_set("acks")


def test_defaults_are_kafkas() -> None:
    config = consumer_config(bootstrap_servers="h:1")
    assert config["max.poll.records"] == 500
    assert config["session.timeout.ms"] == 45_000
    assert config["partition.assignment.strategy"] == ("range", "cooperative-sticky")
    assert admin_config(bootstrap_servers="h:1")["connections.max.idle.ms"] == 300_000


def test_numbers_for_string_settings_and_objects_are_accepted() -> None:
    serializer = str.encode
    config = producer_config(bootstrap_servers="h:1", acks=1, key_serializer=serializer)
    assert config["acks"] == "1"
    assert config["key.serializer"] is serializer
    interceptor = object()
    for given in (interceptor, [interceptor]):
        config = producer_config(bootstrap_servers="h:1", interceptor_classes=given)
        assert config["interceptor.classes"] == (interceptor,)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"linger_m": 5}, "did you mean linger_ms"),
        ({"zzz": 5}, "zzz is not a setting of this client."),
        ({"linger_ms": True}, "linger.ms cannot be 'True'"),
        ({"linger_ms": None}, "linger.ms cannot be 'None'"),
        ({"linger_ms": -1}, "at least 0"),
        ({"acks": "2"}, "one of all"),
        ({"security_protocol": "TLS"}, "one of PLAINTEXT"),
        ({"enable_idempotence": 1}, "of type boolean"),
        ({"bootstrap_servers": "nohost"}, "each item must be host:port"),
        ({"bootstrap_servers": "h:99999"}, "each item must be host:port"),
        ({"bootstrap_servers": "fe80::1:9092"}, "each item must be host:port"),
        ({"bootstrap_servers": ""}, "at least one broker"),
    ],
)
def test_the_error_for_a_wrong_setting_is_one_clear_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        producer_config(**{"bootstrap_servers": "h:1", **settings})
    assert sentence in str(caught.value)


def test_for_a_dict_the_suggested_key_has_dots() -> None:
    with pytest.raises(ConfigError, match=r"did you mean group\.id\?"):
        consumer_config({"bootstrap.servers": "h:1", "groupid": "g"})


def test_a_key_given_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"linger\.ms is given twice"):
        producer_config({"bootstrap.servers": "h:1", "linger.ms": 1}, linger_ms=2)


def test_ipv6_addresses_are_in_brackets() -> None:
    assert admin_config(bootstrap_servers="[::1]:9092").servers == (("::1", 9092),)


def test_a_client_without_a_client_id_gets_one() -> None:
    where = {"bootstrap.servers": "localhost:9092"}
    first, second = (consumer_config(where, group_id="billing")["client.id"] for _ in range(2))
    assert first.startswith("consumer-billing-")
    assert first != second
    assert producer_config(where, transactional_id="t")["client.id"] == "producer-t"
    assert admin_config(where)["client.id"].startswith("adminclient-")
    assert admin_config(where, client_id="mine")["client.id"] == "mine"


def test_the_typed_settings_are_current() -> None:
    from tools import write_client_settings

    committed = write_client_settings.TARGET.read_text(encoding="utf-8")
    assert committed == write_client_settings.module(), "run: python -m tools.write_client_settings"


@pytest.mark.parametrize(
    ("settings", "keys"),
    [(AdminSettings, ADMIN_KEYS), (ConsumerSettings, CONSUMER_KEYS), (ProducerSettings, PRODUCER_KEYS)],
)
def test_every_key_is_a_typed_setting(settings: Any, keys: dict[str, ConfigKey]) -> None:
    assert set(settings.__annotations__) == {name.replace(".", "_") for name in keys}
