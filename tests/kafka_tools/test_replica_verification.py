"""Kafka's own kafka-replica-verification reads our replicas, and says what ours says."""

import os
import subprocess
from collections.abc import Iterator

import pytest
from tests.cluster.test_replica_verification import fill
from tests.java.jvm import java_command
from tests.kafka_tools.conftest import CLASSES, run_ours

from barnabas.client.admin import NewTopic
from barnabas.testing import Cluster

pytestmark = pytest.mark.java
TOPIC = "verified"
RECORDS = 7


@pytest.fixture(scope="module")
def cluster(jars: str) -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        with cluster.admin() as admin:
            admin.create_topics([NewTopic(TOPIC, 1, 3)])
        cluster.wait_until_in_sync(TOPIC)
        fill(cluster, TOPIC, RECORDS)
        yield cluster


def test_both_find_the_replicas_equal(cluster: Cluster) -> None:
    options = ["--broker-list", cluster.bootstrap, "--topics-include", TOPIC, "--time", "-2"]
    code, printed, _ = run_ours(["replica-verification", *options, "--once"])
    ours = _reports(printed.splitlines())
    assert code == 0
    assert ours[-1] == f"max lag is 0 for partition {TOPIC}-0 at offset {RECORDS} among 1 partitions"
    assert _kafkas_reports(options) == ours


def _kafkas_reports(options: list[str]) -> list[str]:
    """The first lines of Kafka's tool, which goes on for ever: up to a report about the end of the log."""
    arguments = [*options, "--report-interval-ms", "200"]
    command = java_command(CLASSES["replica-verification"], arguments)
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line)
                if f"at offset {RECORDS} " in line or len(lines) > 100:
                    break
        finally:
            os.kill(process.pid, 9)
    reports = _reports(lines)
    return [reports[0], reports[-1]]


def _reports(lines: list[str]) -> list[str]:
    """Without the times, and without the full stop that one version has."""
    return [
        line.partition(": ")[2].strip().rstrip(".")
        for line in lines
        if "verification" in line or "max lag" in line
    ]
