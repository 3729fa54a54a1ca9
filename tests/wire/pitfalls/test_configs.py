"""Pitfall 13: every config has its source; AlterConfigs replaces all, incremental changes add."""

from typing import Any

import pytest
from tests.support.raw_calls import METADATA, Topic, new_topic
from tests.support.raw_client import RawClient

from barnabas.config.broker import BROKER_KEYS
from barnabas.config.topic import TOPIC_KEYS
from barnabas.errors import ErrorCode
from barnabas.wire.messages import alter_configs, incremental_alter_configs
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.metadata import MetadataRequest

DESCRIBE_CONFIGS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 32, 33, 44
VERSIONS = range(1, 5)
TOPIC, BROKER = 2, 4
DYNAMIC_TOPIC, STATIC_BROKER, DEFAULT = 1, 4, 5
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(client: RawClient, kind: int, name: str, version: int = 4, keys: list[str] | None = None) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=True, include_documentation=version >= 3
    )
    (result,) = client.call(DESCRIBE_CONFIGS, version, request).results
    return result


def configs_of(client: RawClient, topic: Topic, version: int = 4) -> dict[str, Any]:
    return {config.name: config for config in describe(client, TOPIC, topic.name, version).configs}


def overrides_of(client: RawClient, topic: Topic) -> dict[str, str]:
    configs = configs_of(client, topic).values()
    return {config.name: config.value for config in configs if config.config_source == DYNAMIC_TOPIC}


@pytest.mark.parametrize("version", VERSIONS)
def test_13_every_config_of_a_topic_is_there_with_its_source(client: RawClient, version: int) -> None:
    topic = new_topic(client, segment_bytes="2000000", retention_ms="12345")
    configs = configs_of(client, topic, version)
    assert configs.keys() == {name for name, key in TOPIC_KEYS.items() if not key.internal}
    segment = configs["segment.bytes"]
    assert (segment.value, segment.config_source, segment.read_only) == ("2000000", DYNAMIC_TOPIC, False)
    assert [(synonym.name, synonym.source) for synonym in segment.synonyms] == [
        ("segment.bytes", DYNAMIC_TOPIC),
        ("log.segment.bytes", DEFAULT),
    ]
    # As in Kafka: log.retention.ms has no default, so the override has no synonym.
    assert [synonym.name for synonym in configs["retention.ms"].synonyms] == ["retention.ms"]
    message = configs["max.message.bytes"]
    assert (message.value, message.config_source) == ("1048588", DEFAULT)
    assert [synonym.name for synonym in message.synonyms] == ["message.max.bytes"]
    if version >= 3:
        assert all(config.documentation and config.config_type for config in configs.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_13_every_config_of_the_broker_is_there(client: RawClient, version: int) -> None:
    (node,) = client.call(METADATA, 12, MetadataRequest(topics=[])).brokers
    result = describe(client, BROKER, str(node.node_id), version)
    configs = {config.name: config for config in result.configs}
    assert configs.keys() >= {name for name, key in BROKER_KEYS.items() if not key.internal}
    partitions = configs["num.partitions"]
    assert (partitions.value, partitions.config_source) == ("4", STATIC_BROKER)
    assert configs["log.retention.hours"].config_source == DEFAULT
    assert configs["log.dirs"].read_only
    assert all(config.value is None for config in configs.values() if config.is_sensitive)


def test_13_only_the_requested_configs(client: RawClient) -> None:
    topic = new_topic(client)
    result = describe(client, TOPIC, topic.name, keys=["retention.ms", "no.such.config"])
    assert [config.name for config in result.configs] == ["retention.ms"]


@pytest.mark.parametrize("version", VERSIONS)
def test_13_a_resource_named_twice_is_answered_once(client: RawClient, version: int) -> None:
    """A few kilobytes must not cause a response of a hundred megabytes; clients read one result."""
    topic = new_topic(client)
    all_keys = DescribeConfigsResource(resource_type=TOPIC, resource_name=topic.name, configuration_keys=None)
    one_key = DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic.name, configuration_keys=["retention.ms"]
    )
    request = DescribeConfigsRequest(resources=[all_keys, one_key] * 1000)
    first, second = client.call(DESCRIBE_CONFIGS, version, request).results
    assert (len(first.configs) > 20, len(second.configs)) == (True, 1)


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "not-there", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "4711", ErrorCode.INVALID_REQUEST),
        (BROKER, "me", ErrorCode.INVALID_REQUEST),
        (99, "what", ErrorCode.INVALID_REQUEST),
    ],
)
def test_13_a_resource_that_does_not_exist(client: RawClient, kind: int, name: str, error: ErrorCode) -> None:
    assert describe(client, kind, name).error_code == error


@pytest.mark.parametrize("version", range(3))
def test_13_alter_configs_replaces_all(client: RawClient, version: int) -> None:
    topic = new_topic(client, retention_ms="1000", segment_bytes="2000000")

    def alter(validate_only: bool = False, **configs: str) -> int:
        alterations = [
            alter_configs.AlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        resource = alter_configs.AlterConfigsResource(
            resource_type=TOPIC, resource_name=topic.name, configs=alterations
        )
        request = alter_configs.AlterConfigsRequest(resources=[resource], validate_only=validate_only)
        error: int = client.call(ALTER_CONFIGS, version, request).responses[0].error_code
        return error

    assert alter(retention_ms="soon") == ErrorCode.INVALID_CONFIG
    assert alter(validate_only=True, retention_ms="5") == 0
    assert overrides_of(client, topic) == {"retention.ms": "1000", "segment.bytes": "2000000"}
    assert alter(retention_bytes="77") == 0
    assert overrides_of(client, topic) == {"retention.bytes": "77"}
    assert alter() == 0
    assert overrides_of(client, topic) == {}


@pytest.mark.parametrize("version", range(2))
def test_13_incremental_changes_touch_nothing_else(client: RawClient, version: int) -> None:
    topic = new_topic(client, retention_ms="1000")

    def alter(*changes: tuple[str, int, str | None], validate_only: bool = False) -> int:
        alterations = [
            incremental_alter_configs.AlterableConfig(name=name, config_operation=operation, value=value)
            for name, operation, value in changes
        ]
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=TOPIC, resource_name=topic.name, configs=alterations
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[resource], validate_only=validate_only
        )
        error: int = client.call(INCREMENTAL_ALTER_CONFIGS, version, request).responses[0].error_code
        return error

    assert alter(("cleanup.policy", APPEND, "compact")) == 0
    assert overrides_of(client, topic) == {"retention.ms": "1000", "cleanup.policy": "delete,compact"}
    assert alter(("cleanup.policy", SUBTRACT, "delete"), ("retention.ms", DELETE, None)) == 0
    assert overrides_of(client, topic) == {"cleanup.policy": "compact"}
    assert alter(("segment.bytes", SET, "3000000"), validate_only=True) == 0
    assert alter(("segment.bytes", SET, "few")) == ErrorCode.INVALID_CONFIG
    assert alter(("segment.bytes", APPEND, "3000000")) == ErrorCode.INVALID_CONFIG
    assert alter(("segment.bytes", SET, "3000000")) == 0
    assert overrides_of(client, topic) == {"cleanup.policy": "compact", "segment.bytes": "3000000"}
