"""The broker that the Java client and Kafka's tools judge.

BARNABAS_TEST_PEER=kafka puts a real Apache Kafka in its place, to see that the tests themselves are right."""

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.clients.broker_process import BrokerProcess
from tests.java.jvm import JavaMissing, class_path, compiled_sources, run_java
from tests.java.kafka_server import KafkaServer, running_kafka

Server = BrokerProcess | KafkaServer
MakeServer = Callable[..., Server]
JAVA_TESTS_PEER = os.environ.get("BARNABAS_TEST_PEER", "barnabas")


@pytest.fixture(scope="session", autouse=True)
def jars() -> str:
    """Kafka's class path, or one clear sentence on what is missing."""
    try:
        return class_path()
    except JavaMissing as reason:
        pytest.fail(str(reason), pytrace=False)


def server_class() -> type[BrokerProcess] | type[KafkaServer]:
    return KafkaServer if JAVA_TESTS_PEER == "kafka" else BrokerProcess


@pytest.fixture(scope="session")
def server(jars: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One broker for all tests that only talk to it."""
    running = server_class()(tmp_path_factory.mktemp("judged"))
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def bootstrap(server: Server) -> str:
    return server.bootstrap


@pytest.fixture
def make_server(jars: str, tmp_path: Path) -> Iterator[MakeServer]:
    """Start a broker of this test alone: make_server(overrides) -> server; whatever still runs is killed."""
    started: list[Server] = []

    def make(overrides: Mapping[str, str] | None = None, kind: type[Server] | None = None) -> Server:
        each = (kind or server_class())(tmp_path / f"server{len(started)}", overrides)
        started.append(each)
        each.start()
        return each

    yield make
    for each in started:
        each.stop(signal.SIGKILL)


def run_scenarios(bootstrap: str) -> dict[str, dict[str, Any]]:
    compiled_sources()
    done = run_java("judge.Main", bootstrap, timeout=280)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["scenario"]: line for line in lines}


@pytest.fixture(scope="session")
def scenarios(bootstrap: str) -> dict[str, dict[str, Any]]:
    """What the Java program saw, by scenario: each has a result or a failure."""
    return run_scenarios(bootstrap)


@pytest.fixture(scope="session")
def scenarios_of_kafka(jars: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The same scenarios told to Apache Kafka, for answers too long to be written down here."""
    with running_kafka(tmp_path_factory.mktemp("kafka")) as kafka:
        return run_scenarios(kafka.bootstrap)
