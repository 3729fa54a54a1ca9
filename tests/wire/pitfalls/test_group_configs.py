"""Pitfall 13 for consumer groups: settings of one group (resource type 32), which its members follow."""

import uuid
from typing import Any

import pytest
from tests.support.raw_client import RawClient
from tests.support.raw_groups import RawGroup

from barnabas.errors import ErrorCode
from barnabas.wire.messages import alter_configs, incremental_alter_configs
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest

DESCRIBE_CONFIGS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS, LIST_CONFIG_RESOURCES = 32, 33, 44, 74
CONSUMER_GROUP_HEARTBEAT = 68
GROUP = 32
DEFAULT, DYNAMIC_GROUP = 5, 8
SET, DELETE, APPEND, _ = range(4)
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@pytest.fixture
def name() -> str:
    return f"configured-{uuid.uuid4().hex}"


def described(client: RawClient, name: str) -> dict[str, tuple[str, int]]:
    """Value and source of each setting."""
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = client.call(DESCRIBE_CONFIGS, 4, request).results
    assert result.error_code == 0
    for config in result.configs:
        # The setting of the broker is always a synonym.
        assert config.synonyms[-1].name in (f"group.{config.name}", config.name)
    return {config.name: (config.value, config.config_source) for config in result.configs}


def alter(client: RawClient, name: str, *changes: tuple[str, int, str | None], dry: bool = False) -> int:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=GROUP,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=dry
    )
    (answer,) = client.call(INCREMENTAL_ALTER_CONFIGS, 1, request).responses
    return int(answer.error_code)


def replace(client: RawClient, name: str, **configs: str) -> int:
    resource = alter_configs.AlterConfigsResource(
        resource_type=GROUP,
        resource_name=name,
        configs=[alter_configs.AlterableConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = alter_configs.AlterConfigsRequest(resources=[resource])
    (answer,) = client.call(ALTER_CONFIGS, 2, request).responses
    return int(answer.error_code)


def listed(client: RawClient) -> list[str]:
    request = ListConfigResourcesRequest(resource_types=[GROUP])
    answer = client.call(LIST_CONFIG_RESOURCES, 1, request)
    return [resource.resource_name for resource in answer.config_resources]


def beat(client: RawClient, name: str, **fields: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(group_id=name, member_id="member", **fields)
    answer = client.call(CONSUMER_GROUP_HEARTBEAT, 1, request)
    assert answer.error_code == 0
    return answer


def test_13_settings_of_a_group_are_set_and_deleted(client: RawClient, name: str) -> None:
    before = described(client, name)
    assert (before[SESSION], before[HEARTBEAT]) == (("45000", DEFAULT), ("5000", DEFAULT))
    assert name not in listed(client)
    assert alter(client, name, (SESSION, SET, "50000"), dry=True) == 0
    assert described(client, name) == before
    assert alter(client, name, (SESSION, SET, "50000")) == 0
    assert described(client, name) == {**before, SESSION: ("50000", DYNAMIC_GROUP)}
    assert alter(client, name, (HEARTBEAT, SET, "7000")) == 0
    assert name in listed(client)
    assert replace(client, name, **{SESSION: "55000"}) == 0
    assert described(client, name) == {**before, SESSION: ("55000", DYNAMIC_GROUP)}
    assert alter(client, name, (SESSION, DELETE, None)) == 0
    assert described(client, name) == before
    assert name not in listed(client)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ((SESSION, SET, "44999"), ErrorCode.INVALID_CONFIG),
        ((SESSION, SET, "60001"), ErrorCode.INVALID_CONFIG),
        ((SESSION, SET, "soon"), ErrorCode.INVALID_CONFIG),
        ((SESSION, SET, None), ErrorCode.INVALID_REQUEST),
        ((SESSION, APPEND, "50000"), ErrorCode.INVALID_CONFIG),
        ((HEARTBEAT, SET, "4999"), ErrorCode.INVALID_CONFIG),
        ((HEARTBEAT, SET, "15001"), ErrorCode.INVALID_CONFIG),
        (("no.such.setting", SET, "1"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_13_invalid_settings_of_a_group_are_refused(
    client: RawClient, name: str, change: tuple[str, int, str | None], error: ErrorCode
) -> None:
    before = described(client, name)
    assert alter(client, name, (SESSION, SET, "50000")) == 0
    assert alter(client, name, change) == error
    assert described(client, name) == {**before, SESSION: ("50000", DYNAMIC_GROUP)}


def test_13_there_are_no_default_settings_for_all_groups(client: RawClient) -> None:
    assert alter(client, "", (SESSION, SET, "50000")) == ErrorCode.INVALID_REQUEST


def test_13_a_member_gets_the_heartbeat_interval(client: RawClient, name: str) -> None:
    RawGroup(client, name).find()
    assert alter(client, name, (HEARTBEAT, SET, "7000")) == 0
    joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["none"], "topic_partitions": []}
    joined = beat(client, name, member_epoch=0, **joining)
    assert joined.heartbeat_interval_ms == 7000
    assert alter(client, name, (HEARTBEAT, SET, "8000")) == 0
    assert beat(client, name, member_epoch=joined.member_epoch).heartbeat_interval_ms == 8000
    beat(client, name, member_epoch=-1)
