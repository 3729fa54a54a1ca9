"""The broker that the Java client and Kafka's tools test.

BARNABAS_TEST_PEER=kafka tests a real Apache Kafka instead, to see that the tests themselves are right."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.clients.broker_process import BrokerProcess
from tests.java.jvm import JavaMissing, class_path
from tests.java.kafka_server import KafkaServer, running_kafka
from tests.java.scenarios import Scenarios, run_scenarios
from tests.java.tools import Shell

from barnabas.testing.broker import KEEP_OLD_RECORDS

Server = BrokerProcess | KafkaServer
MakeServer = Callable[..., Server]
JAVA_TESTS_PEER = os.environ.get("BARNABAS_TEST_PEER", "barnabas")
# Settings with which coordinators do not make the tests wait.
QUICK = {
    "group.initial.rebalance.delay.ms": "300",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.assignment.interval.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@pytest.fixture(scope="session", autouse=True)
def jars() -> str:
    """Kafka's class path; fails with one sentence that says what is missing."""
    try:
        return class_path()
    except JavaMissing as reason:
        pytest.fail(str(reason), pytrace=False)


def server_class() -> type[BrokerProcess] | type[KafkaServer]:
    return KafkaServer if JAVA_TESTS_PEER == "kafka" else BrokerProcess


@pytest.fixture(scope="session")
def server(jars: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One broker for all tests that do not restart it."""
    running = server_class()(tmp_path_factory.mktemp("tested"), KEEP_OLD_RECORDS)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def bootstrap(server: Server) -> str:
    return server.bootstrap


@pytest.fixture(scope="session")
def coordinator(jars: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One broker for all tests of groups and transactions, with the settings of QUICK."""
    running = server_class()(tmp_path_factory.mktemp("coordinator"), QUICK)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def shell(jars: str) -> Iterator[Shell]:
    """One JVM that runs all tools."""
    running = Shell()
    yield running
    running.close()


@pytest.fixture
def make_server(jars: str, tmp_path: Path) -> Iterator[MakeServer]:
    """make_server(overrides) starts a broker for this test alone; it is killed at the end of the test."""
    started: list[Server] = []

    def make(overrides: Mapping[str, str] | None = None, kind: type[Server] | None = None) -> Server:
        each = (kind or server_class())(tmp_path / f"server{len(started)}", overrides)
        started.append(each)
        each.start()
        return each

    yield make
    for each in started:
        each.stop(signal.SIGKILL)


@pytest.fixture(scope="session")
def scenarios(bootstrap: str) -> Scenarios:
    """What the Java program saw, by scenario: each has a result or a failure."""
    return run_scenarios(bootstrap, "basics")


@pytest.fixture(scope="session")
def scenarios_of_kafka(jars: str, tmp_path_factory: pytest.TempPathFactory) -> Scenarios:
    """What the Java program saw on Apache Kafka: results that are too long to write down here."""
    with running_kafka(tmp_path_factory.mktemp("kafka"), KEEP_OLD_RECORDS) as kafka:
        return run_scenarios(kafka.bootstrap, "basics")
