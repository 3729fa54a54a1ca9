"""Java clients of several releases, each in a JVM of its own, with another library on the other side.

The program they run is in clients/; it is compiled against the oldest release."""

import uuid
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.java.conftest import Server
from tests.java.jvm import compiled_clients, run_client

pytestmark = pytest.mark.java

# The newest is the release in pom.xml.
VERSIONS = ("2.8.2", "3.4.1", "3.7.2", "4.3.1")
OLDEST = VERSIONS[0]
# As many records as the program sends and reads.
COUNT = 200
VALUES = [f"value {number}" for number in range(COUNT)]
Run = Callable[[str, str], dict[str, str]]


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run(coordinator: Server, version: str) -> Run:
    """Run a kind of client with a topic; what it saw, by name."""

    def run(kind: str, topic: str) -> dict[str, str]:
        classes: Path = compiled_clients(OLDEST)
        done = run_client(version, classes, kind, coordinator.bootstrap, topic)
        assert done.returncode == 0, done.stderr
        seen = dict(line.split(" = ", 1) for line in done.stdout.splitlines())
        assert seen.pop("version") == version
        return seen

    return run


@pytest.fixture
def topic(coordinator: Server) -> str:
    """A new topic with one partition."""
    name = f"versions-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)
    return name


def read(bootstrap: str, topic: str, count: int) -> list[str]:
    """The committed values of partition 0 from its beginning on."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
        return [message.value().decode() for message in consumer.consume(count, timeout=20)]
    finally:
        consumer.close()


def committed(bootstrap: str, group: str, topic: str) -> int:
    settings = {"bootstrap.servers": bootstrap, "group.id": group}
    consumer = confluent_kafka.Consumer(settings)
    try:
        (partition,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], timeout=20)
        return int(partition.offset)
    finally:
        consumer.close()


def test_producer(run: Run, coordinator: Server, topic: str) -> None:
    assert run("producer", topic) == {"partitions": "1", "first": "0", "last": str(COUNT - 1)}
    assert read(coordinator.bootstrap, topic, COUNT) == VALUES


def test_transactional_producer(run: Run, coordinator: Server, topic: str) -> None:
    """Each transaction ends with a marker, which takes an offset."""
    assert run("transactions", topic) == {"committed": "[0, 1]", "aborted": "[3]", "with offset": "[5]"}
    assert read(coordinator.bootstrap, topic, 3) == ["a", "b", "c"]
    assert committed(coordinator.bootstrap, topic, topic) == 2


def test_consumer_in_a_group(run: Run, coordinator: Server, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": coordinator.bootstrap})
    for value in VALUES:
        producer.produce(topic, value.encode())
    assert producer.flush(20) == 0
    count = str(COUNT)
    assert run("consumer", topic) == {
        "assigned": "1",
        "end": count,
        "committed": count,
        "count": count,
        "distinct": count,
    }
    assert committed(coordinator.bootstrap, topic, topic) == COUNT


def test_admin(run: Run) -> None:
    assert run("admin", f"versions-{uuid.uuid4().hex[:8]}") == {
        "nodes": "1",
        "group version": "true",
        "retention": "4242",
        "latest": "0",
        "listed": "true",
        "listed after deletion": "false",
        "acls": "SecurityDisabledException",
        "election": "ElectionNotNeededException",
        "moves": "{}",
        "cancelled move": "NoReassignmentInProgressException",
        "quotas": "{}",
        "users": "[]",
        "tokens": "UnsupportedByAuthenticationException",
    }
