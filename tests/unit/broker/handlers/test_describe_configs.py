"""What DescribeConfigs answers about topics, brokers and loggers."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from barnabas.config.alter import Operation
from barnabas.config.broker import BROKER_KEYS
from barnabas.config.topic import TOPIC_KEYS
from barnabas.errors import ErrorCode
from barnabas.metadata.configs import ConfigChange
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
TOPIC_SOURCE, BROKER_SOURCE, CLUSTER_SOURCE, STATIC_SOURCE, DEFAULT_SOURCE, LOGGER_SOURCE = 1, 2, 3, 4, 5, 6
LONG_TYPE, PASSWORD_TYPE = 5, 9


def describe(
    stage: Any, kind: int, name: str, keys: list[str] | None = None, version: int = 4, **fields: bool
) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    (result,) = stage.ask(DescribeConfigsRequest(resources=[resource], **fields), version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def configs(stage: Any, kind: int, name: str, *keys: str, version: int = 4, **fields: bool) -> dict[str, Any]:
    result = describe(stage, kind, name, list(keys) or None, version, **fields)
    assert result.error_code == ErrorCode.NONE
    return {config.name: config for config in result.configs}


def set_config(stage: Any, kind: int, name: str, key: str, value: str) -> None:
    change = ConfigChange(key, Operation.SET, value)
    assert stage.run(stage.controller.alter_configs([((kind, name), [change])])) == [None]


@pytest.mark.parametrize("version", range(1, 5))
def test_every_config_of_a_topic(stage: Any, version: int) -> None:
    stage.create("t", retention_ms="1000")
    described = configs(stage, TOPIC, "t", version=version)
    assert described.keys() == {name for name, key in TOPIC_KEYS.items() if not key.internal}
    retention = described["retention.ms"]
    assert (retention.value, retention.config_source, retention.read_only) == ("1000", TOPIC_SOURCE, False)
    assert described["segment.bytes"].config_source == DEFAULT_SOURCE
    assert not any(config.synonyms for config in described.values())
    assert retention.config_type == (LONG_TYPE if version >= 3 else 0)
    assert not any(config.documentation for config in described.values())


def test_synonyms_list_all_sources_of_a_value(make_stage: Any) -> None:
    stage = make_stage(log_retention_ms="5000")
    stage.create("t", retention_ms="1000")
    set_config(stage, BROKER, "", "log.retention.ms", "4000")
    set_config(stage, BROKER, "1", "log.retention.ms", "3000")
    retention = configs(stage, TOPIC, "t", "retention.ms", include_synonyms=True)["retention.ms"]
    assert [(s.name, s.value, s.source) for s in retention.synonyms][:4] == [
        ("retention.ms", "1000", TOPIC_SOURCE),
        ("log.retention.ms", "3000", BROKER_SOURCE),
        ("log.retention.ms", "4000", CLUSTER_SOURCE),
        ("log.retention.ms", "5000", STATIC_SOURCE),
    ]


def test_documentation_on_request(stage: Any) -> None:
    stage.create("t")
    described = configs(stage, TOPIC, "t", include_documentation=True)
    assert described["retention.ms"].documentation == TOPIC_KEYS["retention.ms"].doc


def test_only_the_requested_keys(stage: Any) -> None:
    stage.create("t")
    assert configs(stage, TOPIC, "t", "retention.ms", "no.such.key").keys() == {"retention.ms"}
    assert len(describe(stage, TOPIC, "t", []).configs) > 20


def test_topics_that_cannot_be_described(stage: Any) -> None:
    assert describe(stage, TOPIC, "gone").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(stage, TOPIC, "no spaces").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_every_config_of_this_broker(make_stage: Any) -> None:
    stage = make_stage(num_partitions="7", ssl_keystore_password="secret")
    set_config(stage, BROKER, "1", "log.retention.ms", "3000")
    described = configs(stage, BROKER, "1")
    assert described.keys() == {name for name, key in BROKER_KEYS.items() if not key.internal}
    partitions, retention = described["num.partitions"], described["log.retention.ms"]
    assert (partitions.value, partitions.config_source, partitions.read_only) == ("7", STATIC_SOURCE, True)
    assert (retention.value, retention.config_source, retention.read_only) == ("3000", BROKER_SOURCE, False)
    password = described["ssl.keystore.password"]
    assert (password.value, password.is_sensitive, password.config_type) == (None, True, PASSWORD_TYPE)


def test_the_cluster_default_lists_only_what_was_set(stage: Any) -> None:
    assert configs(stage, BROKER, "") == {}
    set_config(stage, BROKER, "", "log.retention.ms", "4000")
    described = configs(stage, BROKER, "")
    assert [(name, config.value, config.config_source) for name, config in described.items()] == [
        ("log.retention.ms", "4000", CLUSTER_SOURCE)
    ]


@pytest.mark.parametrize(
    ("kind", "name"),
    [(BROKER, "2"), (BROKER, "one"), (BROKER_LOGGER, "2"), (BROKER_LOGGER, ""), (GROUP, ""), (99, "x")],
)
def test_resources_that_this_broker_cannot_answer_for(stage: Any, kind: int, name: str) -> None:
    result = describe(stage, kind, name)
    assert (result.error_code, result.configs) == (ErrorCode.INVALID_REQUEST, [])
    assert result.error_message


def test_client_metrics_have_no_configs(stage: Any) -> None:
    assert configs(stage, CLIENT_METRICS, "any") == {}


def test_a_group_that_is_not_there_has_the_settings_of_the_broker(stage: Any) -> None:
    described = configs(stage, GROUP, "any")
    assert {name: config.value for name, config in described.items()} == {
        "consumer.session.timeout.ms": "45000",
        "consumer.heartbeat.interval.ms": "5000",
        "consumer.assignment.interval.ms": "1000",
    }


def test_loggers_and_the_levels_in_force(stage: Any) -> None:
    logger = logging.getLogger("barnabas.tests.described")
    logger.setLevel(logging.WARNING)
    child = logging.getLogger("barnabas.tests.described.child")
    described = configs(stage, BROKER_LOGGER, "1")
    assert described[logger.name].value == described[child.name].value == "WARN"
    assert (described["root"].config_source, described["root"].read_only) == (LOGGER_SOURCE, False)
    logger.setLevel(logging.NOTSET)
    assert configs(stage, BROKER_LOGGER, "1", logger.name)[logger.name].value == described["root"].value
