"""DescribeConfigs beside a real Kafka: the same keys, types, defaults, sources and synonyms."""

from typing import Any

import pytest

pytestmark = pytest.mark.java

Scenarios = dict[str, dict[str, Any]]
# Set by the two test beds, each in its own way, or naming the machine and its directories.
SET_BY_THE_TEST_BED = {
    "advertised.listeners",
    "broker.id",
    "controller.listener.names",
    "controller.quorum.voters",
    "group.initial.rebalance.delay.ms",
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "log.dirs",
    "node.id",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "process.roles",
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
}


def _described(scenarios: Scenarios, name: str) -> dict[str, dict[str, Any]]:
    assert "failure" not in scenarios[name], scenarios[name]["failure"]
    described: dict[str, dict[str, Any]] = scenarios[name]["result"]
    return {
        key: {name: value for name, value in entry.items() if name != "documented"}
        for key, entry in described.items()
        if key not in SET_BY_THE_TEST_BED and not key.startswith("barnabas.")
    }


@pytest.mark.parametrize("name", ["topic-configs", "broker-configs"])
def test_described_as_kafka_does(scenarios: Scenarios, scenarios_of_kafka: Scenarios, name: str) -> None:
    ours = _described(scenarios, name)
    theirs = _described(scenarios_of_kafka, name)
    assert sorted(ours) == sorted(theirs)
    different = {key: (ours[key], theirs[key]) for key in theirs if ours[key] != theirs[key]}
    assert different == {}


@pytest.mark.parametrize("name", ["topic-configs", "broker-configs"])
def test_every_config_is_documented(scenarios: Scenarios, name: str) -> None:
    result = scenarios[name]["result"]
    assert [key for key, entry in result.items() if not entry["documented"]] == []
