"""DescribeConfigs compared with a real Kafka: the same keys, types, defaults, sources and synonyms."""

from typing import Any

import pytest
from tests.java.scenarios import Scenarios

pytestmark = pytest.mark.java

# Keys that Kafka 4 does not have: our own, and those that it had with ZooKeeper.
OURS_ALONE = ("barnabas.", "password.encoder.", "zookeeper.")
# The tests set these to different values for the two brokers, or they name the machine or its directories.
SET_BY_THE_TESTS = {
    "advertised.listeners",
    "broker.id",
    "controller.listener.names",
    "controller.quorum.voters",
    "group.initial.rebalance.delay.ms",
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "log.dirs",
    "min.insync.replicas",  # Kafka's storage tool writes a default for all brokers
    "node.id",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "process.roles",
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
}


VALUE_FIELDS = {"value", "source", "synonyms"}


def _described(scenarios: Scenarios, name: str) -> dict[str, dict[str, Any]]:
    """The fields of every key that can be compared: not the documentation, nor values that a test sets."""
    assert "failure" not in scenarios[name], scenarios[name]["failure"]
    described: dict[str, dict[str, Any]] = scenarios[name]["result"]
    compared = {}
    for key, entry in described.items():
        if key.startswith(OURS_ALONE):
            continue
        left_out = {"documented"} | (VALUE_FIELDS if key in SET_BY_THE_TESTS else set())
        compared[key] = {name: value for name, value in entry.items() if name not in left_out}
    return compared


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
