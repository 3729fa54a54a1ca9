"""Our tools and Kafka's print the same about three brokers, also while one of them is down."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kafka_tools.conftest import Compare

from barnabas.client.admin import NewTopic
from barnabas.client.types import TopicPartition
from barnabas.testing import Cluster

pytestmark = pytest.mark.java
TOPIC = "replicated"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        with cluster.admin() as admin:
            admin.create_topics([NewTopic(TOPIC, assignments={0: [1, 2, 3], 1: [2, 3, 1]})])
            admin.create_topics([NewTopic("on-two", assignments={0: [2, 1]})])
            admin.create_topics([NewTopic("on-three", assignments={0: [3]})])
        cluster.wait_until_in_sync(TOPIC)
        yield cluster


@pytest.fixture(scope="module")
def bootstrap(cluster: Cluster) -> str:
    return cluster.bootstrap


@pytest.fixture
def reduced(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster without broker 3."""
    cluster.stop(3)
    yield cluster
    cluster.restart(3)
    cluster.wait_until_in_sync(TOPIC)


def test_what_is_missing(same: Compare, reduced: Cluster) -> None:
    for report in ("under-replicated", "unavailable", "at-min-isr", "under-min-isr"):
        same("topics", "--describe", f"--{report}-partitions")
    assert same("topics", "--describe", "--unavailable-partitions").lines[0].startswith("\tTopic: on-three")
    same("topics", "--describe", "--topic", TOPIC)
    same("cluster", "list-endpoints", "--include-fenced-brokers", ordered=False)


def test_a_move_that_waits_is_listed_verified_and_cancelled(
    same: Compare, reduced: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "moves.json"
    entry = {"topic": "on-two", "partition": 0, "replicas": [2, 3]}
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    with reduced.admin() as admin:
        admin.alter_partition_reassignments({TopicPartition("on-two", 0): [2, 3]})
    assert same("reassign-partitions", "--list").lines[1].startswith("on-two-0: replicas: ")
    verify = ("--verify", "--reassignment-json-file", str(file), "--preserve-throttles")
    assert "still in progress" in same("reassign-partitions", *verify).lines[1]
    same("topics", "--describe", "--topic", "on-two")
    with reduced.admin() as admin:
        admin.alter_partition_reassignments({TopicPartition("on-two", 0): None})
    assert same("reassign-partitions", "--list").lines == ["No partition reassignments found."]


def test_leaders_and_directories(same: Compare, cluster: Cluster) -> None:
    election = ("--election-type", "preferred", "--topic", TOPIC, "--partition", "0")
    same("leader-election", *election)
    assert same("leader-election", *election).lines[0].startswith("Valid replica already elected")
    same("log-dirs", "--describe", "--topic-list", TOPIC)
    same("cluster", "list-endpoints", ordered=False)
