"""What ListConfigResources lists, by version and type."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.ids import random_uuid
from barnabas.metadata.records import BrokerRecord, ConfigRecord
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.fixture
def filled(stage: Any) -> Any:
    stage.create("b")
    stage.create("a", retention_ms="1000")
    stage.write(
        BrokerRecord(2, 9, random_uuid(), (), fenced=True),
        ConfigRecord(CLIENT_METRICS, "metrics", "interval.ms", "100"),
        ConfigRecord(GROUP, "group", "consumer.session.timeout.ms", "100"),
    )
    return stage


def listed(stage: Any, *types: int, version: int = 1) -> list[tuple[int, str]]:
    response = stage.ask(ListConfigResourcesRequest(resource_types=list(types)), version)
    assert response.error_code == ErrorCode.NONE
    return [(resource.resource_type, resource.resource_name) for resource in response.config_resources]


def test_version_0_knows_client_metrics_only(filled: Any) -> None:
    assert listed(filled, version=0) == [(CLIENT_METRICS, "metrics")]


def test_an_empty_list_of_types_means_all_types(filled: Any) -> None:
    assert listed(filled) == [
        (TOPIC, "a"),
        (TOPIC, "b"),
        (BROKER, "1"),
        (BROKER, "2"),
        (BROKER_LOGGER, "1"),
        (BROKER_LOGGER, "2"),
        (CLIENT_METRICS, "metrics"),
        (GROUP, "group"),
    ]


def test_only_the_requested_types_and_each_once(filled: Any) -> None:
    assert listed(filled, GROUP, TOPIC, GROUP) == [(GROUP, "group"), (TOPIC, "a"), (TOPIC, "b")]


def test_an_unknown_type_is_refused(filled: Any) -> None:
    response = filled.ask(ListConfigResourcesRequest(resource_types=[TOPIC, 3]), 1)
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
