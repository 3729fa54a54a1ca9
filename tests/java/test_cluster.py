"""Java clients of a cluster whose brokers end and start again: no client sees an error."""

import itertools
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.java.jvm import compiled_sources, java_command

from barnabas.client.admin import ElectionType
from barnabas.coordination.hashing import partition_for
from barnabas.testing import Cluster

pytestmark = pytest.mark.java
BROKERS = (1, 2, 3)
SETTINGS = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    # Leaders change only when a test asks for it.
    "auto.leader.rebalance.enable": "false",
}
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
SOME = 50


class JavaClients:
    """One JVM (judge.Failover) with Java clients; each call is a command with one answer."""

    def __init__(self, cluster: Cluster) -> None:
        compiled_sources()
        self.cluster = cluster
        self._process = subprocess.Popen(
            java_command("judge.Failover", [cluster.bootstrap]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *command: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(command), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        assert "failure" not in answer, answer["failure"]
        return answer["result"]

    def wait_for_more(self, *jobs: str, count: int = SOME) -> None:
        """Return when each of the jobs has done `count` more."""
        targets = {job: self("done", job) + count for job in jobs}
        for job, target in targets.items():
            self.wait_for(job, target)

    def wait_for(self, job: str, target: int) -> None:
        self.cluster.wait_until(lambda: self("done", job) >= target, f"{job} has done {target}")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def cluster(jars: str) -> Iterator[Cluster]:
    with Cluster(brokers=len(BROKERS), overrides=SETTINGS, racks=["a", "b", "c"]) as cluster:
        with cluster.admin() as admin:
            admin.fence_producers(["creates the topic"])
            admin.list_consumer_group_offsets("creates the topic")
        for topic in INTERNAL_TOPICS:
            cluster.wait_until_in_sync(topic)
        yield cluster
        for broker in cluster.brokers.values():
            assert "Traceback" not in broker.output(), broker.output_tail()


@pytest.fixture
def java(cluster: Cluster) -> Iterator[JavaClients]:
    """New clients; when a test begins, all brokers run, and each leads its share of the partitions."""
    with cluster.admin() as admin:
        admin.elect_leaders(ElectionType.PREFERRED)
    clients = JavaClients(cluster)
    yield clients
    clients.close()
    for broker_id, broker in cluster.brokers.items():
        if not broker.is_running:
            cluster.restart(broker_id)
    for topic in INTERNAL_TOPICS:
        cluster.wait_until_in_sync(topic)


def create(java: JavaClients, cluster: Cluster, topic: str, partitions: int) -> None:
    java("create", topic, str(partitions), str(len(BROKERS)))
    cluster.wait_until_in_sync(topic)


def wait_for_another_leader(cluster: Cluster, partition: tuple[str, int], former: int) -> None:
    cluster.wait_until(
        lambda: cluster.leader_of(partition) not in (former, -1), f"{partition} has another leader"
    )


def restart(cluster: Cluster, broker_id: int, *topics: str) -> None:
    cluster.restart(broker_id)
    for topic in (*topics, *INTERNAL_TOPICS):
        cluster.wait_until_in_sync(topic)


def test_an_idempotent_producer_and_groups_while_leaders_end(cluster: Cluster, java: JavaClients) -> None:
    topic = "orders"
    create(java, cluster, topic, 3)
    java("start", "writer", "write", topic)
    java("start", "classic", "read", topic, "classic group", "classic", "")
    java("start", "modern", "read", topic, "modern group", "consumer", "b")
    everyone = ("writer", "classic", "modern")
    java.wait_for_more(*everyone)
    for end in (cluster.kill, cluster.stop):
        leader = cluster.leader_of((topic, 0))
        end(leader)
        wait_for_another_leader(cluster, (topic, 0), leader)
        java.wait_for_more(*everyone)
        restart(cluster, leader, topic)
        java.wait_for_more(*everyone)
    written = java("stop", "writer")
    count = written["sent"]
    assert written["acknowledged"] == count
    java.wait_for("classic", count)
    java.wait_for("modern", count)
    classic, modern = java("stop", "classic"), java("stop", "modern")
    assert classic.pop("nearest") in ([], [-1])
    assert 2 in modern.pop("nearest"), "never read from broker 2, which is in the consumer's rack"
    assert classic == modern == {"read": count, "distinct": count, "outOfOrder": 0}


def name_with_coordinator(cluster: Cluster, internal_topic: str, coordinator: int) -> tuple[str, int]:
    """A group or transactional id of which this broker is the coordinator, and its partition."""
    leaders = [cluster.leader_of((internal_topic, number)) for number in range(6)]
    assert coordinator in leaders
    for number in itertools.count():
        name = f"copy {number}"
        partition = partition_for(name, len(leaders))
        if leaders[partition] == coordinator:
            return name, partition
    raise AssertionError


def test_transactions_with_offsets_while_coordinators_die(cluster: Cluster, java: JavaClients) -> None:
    """One broker is the coordinator of the transactions, another that of the group."""
    create(java, cluster, "source", 2)
    create(java, cluster, "target", 1)
    group, of_group = name_with_coordinator(cluster, "__consumer_offsets", 1)
    transactional_id, of_transactions = name_with_coordinator(cluster, "__transaction_state", 3)
    java("start", "writer", "write", "source")
    java("start", "copier", "copy", "source", "target", group, transactional_id)
    java.wait_for_more("copier")
    for partition in (("__transaction_state", of_transactions), ("__consumer_offsets", of_group)):
        coordinator = cluster.leader_of(partition)
        cluster.kill(coordinator)
        wait_for_another_leader(cluster, partition, coordinator)
        java.wait_for_more("writer", "copier")
        restart(cluster, coordinator, "source", "target")
    count = java("stop", "writer")["acknowledged"]
    java.wait_for("copier", count)
    assert java("stop", "copier") == count
    # A commit is answered before its markers are written.
    cluster.wait_until(lambda: len(java("committed", "target")) >= count, "all commits are visible")
    copied = sorted(int(line.partition(":")[2]) for line in java("committed", "target"))
    assert copied == list(range(count))


def wait_until_described(
    java: JavaClients, topic: str, leaders: list[int], replicas: list[int], in_sync: list[int]
) -> None:
    """The answer may come from a broker that does not know the last change yet."""
    expected = [{"leader": leader, "replicas": replicas, "inSync": in_sync} for leader in leaders]
    java.cluster.wait_until(lambda: java("describe", topic) in expected, f"{topic} is one of {expected}")


def test_an_administrator_while_the_controller_dies(cluster: Cluster, java: JavaClients) -> None:
    """The controller leads the partition too."""
    topic = "moved"
    create(java, cluster, topic, 1)
    java("start", "describer", "describe", topic)
    controller = cluster.controller()
    others = [broker_id for broker_id in BROKERS if broker_id != controller]
    # First without the controller, so that another broker leads.
    java("reassign", topic, ",".join(map(str, others)))
    java("reassign", topic, ",".join(map(str, [controller, *others])))
    replicas = [controller, *others]
    java("elect", topic)
    wait_until_described(java, topic, [controller], replicas, list(BROKERS))

    cluster.kill(controller)
    java("create", "created-meanwhile", "1", "2")
    wait_until_described(java, topic, others, replicas, others)
    java.wait_for_more("describer", count=5)

    restart(cluster, controller, topic)
    java("elect", topic)
    wait_until_described(java, topic, [controller], replicas, list(BROKERS))
    create(java, cluster, "created-later", 1)
    java.wait_for_more("describer", count=5)
    described = java("stop", "describer")
    assert {2, 3} <= set(described["counts"]), "the dead broker was never missing, or never came back"
    assert controller in described["leaders"]
    assert set(others) & set(described["leaders"])
    assert described["clusterIds"] == 1
