"""A broker's configuration as it is read from server.properties."""

import pytest

from barnabas.config.definition import ConfigError, Source
from barnabas.config.properties import load_properties
from barnabas.config.topic import TopicConfig
from barnabas.config.values import BrokerConfig


def test_an_empty_file_gives_a_broker_on_this_machine_only() -> None:
    config = BrokerConfig()
    assert [str(listener) for listener in config.listeners] == ["PLAINTEXT://localhost:9092"]
    assert [str(listener) for listener in config.advertised_listeners] == ["PLAINTEXT://127.0.0.1:9092"]
    assert config.log_dirs == ("/tmp/kafka-logs",)
    assert config.node_id == 1
    assert config.topic_defaults == TopicConfig()
    assert config.unknown == []


def test_kafkas_own_file_is_understood(kraft_file: str) -> None:
    config = BrokerConfig(load_properties(kraft_file))
    assert config.node_id == config["broker.id"] == 7
    assert [str(listener) for listener in config.listeners] == ["PLAINTEXT://:9092"]
    assert [str(listener) for listener in config.advertised_listeners] == ["PLAINTEXT://localhost:9092"]
    assert config.inter_broker_listener.name == "PLAINTEXT"
    assert config.log_dirs == ("/tmp/kraft-combined-logs",)
    assert config.unknown == []
    assert config.without_effect == ["num.network.threads"]


def test_a_controller_listener_needs_no_entry_in_the_default_map() -> None:
    config = BrokerConfig(
        {
            "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
        }
    )
    assert [listener.name for listener in config.listeners] == ["PLAINTEXT"]


def test_typed_values_and_their_sources() -> None:
    config = BrokerConfig({"log.dirs": "/a, /b", "log.preallocate": "true"})
    assert config["log.dirs"] == config.log_dirs == ("/a", "/b")
    assert config["log.preallocate"] is True
    assert config.source("log.preallocate") is Source.STATIC_BROKER
    assert config.source("num.partitions") is Source.DEFAULT
    assert len(config) == len(list(config))


def test_dynamic_settings_replace_those_of_the_file_and_one_brokers_those_of_all() -> None:
    file = BrokerConfig({"log.segment.bytes": "2000000"})
    both = file.with_dynamic({"log.segment.bytes": "3000000"}, {"log.segment.bytes": "4000000"})
    cluster = file.with_dynamic({"log.segment.bytes": "3000000"}, {})
    assert (file["log.segment.bytes"], cluster["log.segment.bytes"], both["log.segment.bytes"]) == (
        2_000_000,
        3_000_000,
        4_000_000,
    )
    assert cluster.source("log.segment.bytes") is Source.DYNAMIC_DEFAULT_BROKER
    assert both.source("log.segment.bytes") is Source.DYNAMIC_BROKER
    assert both.topic_defaults.segment_bytes == 4_000_000


def test_overrides_replace_properties_and_keep_the_rest() -> None:
    config = BrokerConfig({"node.id": "3", "num.partitions": "2"}).with_overrides({"num.partitions": "5"})
    assert (config.node_id, config["num.partitions"]) == (3, 5)


@pytest.mark.parametrize(
    "properties", [{"node.id": "4"}, {"broker.id": "4"}, {"node.id": "4", "broker.id": "-1"}]
)
def test_node_id_and_broker_id_mean_the_same(properties: dict[str, str]) -> None:
    config = BrokerConfig(properties)
    assert config.node_id == config["broker.id"] == 4


def test_unknown_keys_are_collected_with_a_suggestion() -> None:
    config = BrokerConfig({"log.segment.byte": "1", "zzz": "1", "listener.name.ssl.ssl.client.auth": "none"})
    assert config.unknown == ["log.segment.byte", "zzz"]
    assert config.unknown_sentences() == [
        "log.segment.byte is not a broker setting; did you mean log.segment.bytes?",
        "zzz is not a broker setting.",
    ]


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"node.id": "1", "broker.id": "2"}, "must be the same number"),
        ({"node.id": "-3"}, "node.id cannot be '-3': it must be at least 0."),
        ({"process.roles": "controller"}, "process.roles must contain broker"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be -1 or at least 1"),
        ({"log.roll.ms": "0"}, "log.roll.ms must be at least 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be at least 0"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "more than 1 MB for each"),
        (
            {"log.cleaner.min.compaction.lag.ms": "9", "log.cleaner.max.compaction.lag.ms": "8"},
            "must not exceed log.cleaner.max.compaction.lag.ms",
        ),
        ({"replica.fetch.wait.max.ms": "40000"}, "must not exceed replica.socket.timeout.ms"),
        (
            {"replica.fetch.wait.max.ms": "400", "replica.lag.time.max.ms": "300"},
            "must not exceed replica.lag.time.max.ms",
        ),
        ({"remote.log.storage.system.enable": "true"}, "no tiered storage"),
        ({"ssl.key.password": "${file:/x:y}"}, "config provider"),
        ({"log.dirs": ""}, "log.dirs cannot be ''"),
        ({"log.dirs": "/a,,/b"}, "without empty items"),
        ({"listener.name.plaintext.ssl.client.auth": "maybe"}, "ssl.client.auth cannot be 'maybe'"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig(properties)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-1"}, -1),
    ],
)
def test_the_finest_unit_of_retention_counts(properties: dict[str, str], retention_ms: int) -> None:
    assert BrokerConfig(properties).topic_defaults.retention_ms == retention_ms


def test_roll_jitter_and_flush_take_their_coarser_keys() -> None:
    config = BrokerConfig(
        {"log.roll.hours": "1", "log.roll.jitter.hours": "1", "log.flush.scheduler.interval.ms": "250"}
    ).topic_defaults
    assert (config.segment_ms, config.segment_jitter_ms, config.flush_ms) == (3_600_000, 3_600_000, 250)
