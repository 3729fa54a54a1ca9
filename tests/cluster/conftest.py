"""One cluster of three brokers for each module of tests that do not need their own."""

import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.client.admin import NewTopic
from barnabas.testing import Cluster

MakeTopic = Callable[..., str]
# Coordinators that react faster than in production.
QUICK = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """When a broker stops, the libraries leave sockets to the garbage collector; that is not tested here."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(scope="module")
def overrides() -> dict[str, str]:
    """Settings of a module's cluster, in addition to QUICK; a module may define its own."""
    return {}


@pytest.fixture(scope="module")
def shared_cluster(overrides: dict[str, str]) -> Iterator[Cluster]:
    with Cluster(brokers=3, overrides=QUICK | overrides) as cluster:
        yield cluster
        for broker in cluster.brokers.values():
            assert "Traceback" not in broker.output(), broker.output_tail()


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The module's cluster; all its brokers run when a test begins."""
    yield shared_cluster
    shared_cluster.heal()
    for broker_id, broker in shared_cluster.brokers.items():
        broker.resume()
        if not broker.is_running:
            shared_cluster.restart(broker_id)


@pytest.fixture
def make_topic(cluster: Cluster, request: pytest.FixtureRequest) -> MakeTopic:
    """make_topic(partitions=1, configs={...}) creates a topic with three replicas, and returns its name."""

    def make(partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        readable = re.sub(r"[^a-zA-Z0-9-]+", "-", request.node.name)[:80].strip("-")
        name = f"{readable}-{uuid.uuid4().hex[:6]}"
        with cluster.admin() as admin:
            admin.create_topics([NewTopic(name, partitions, 3, configs or {})])
        cluster.wait_until_in_sync(name)
        return name

    return make
