"""Three brokers of each system on this machine: ours with a ZooKeeper, Apache Kafka's with KRaft in the same
processes. Topics have three replicas, and two must be in sync."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from tests.bench.goals import KAFKA, OURS
from tests.bench.loads import Target
from tests.bench.usage import resident_bytes
from tests.java.kafka_server import KafkaServer

import barnabas
from barnabas.client.admin import NewTopic
from barnabas.client.errors import KafkaError
from barnabas.testing.local_cluster import LocalCluster, replication_settings
from barnabas.testing.zookeeper import ZooKeeper

BROKERS = 3
WAIT_SECONDS_MAX = 300.0
# A dead broker is missed after the same time.
SESSION_MS = "6000"
OVERRIDES = {"log.segment.delete.delay.ms": "100", "auto.leader.rebalance.enable": "false"}


class ClusterPeer(Protocol):
    """`directory` has a directory broker-<id> for the data of each broker."""

    name: str
    is_running: bool
    directory: Path

    @property
    def bootstrap(self) -> str: ...

    def start(self) -> None:
        """Return when every process listens."""

    def stop(self) -> None: ...

    def pids(self) -> list[int]:
        """All processes of the cluster, with those that keep its metadata."""

    def pid_of(self, broker_id: int) -> int: ...

    def stop_broker(self, broker_id: int) -> None: ...

    def kill_broker(self, broker_id: int) -> None: ...

    def start_broker(self, broker_id: int) -> None: ...


class OurCluster:
    name = OURS

    def __init__(self, directory: Path) -> None:
        self.is_running = False
        self.directory = directory
        overrides = {**OVERRIDES, "zookeeper.session.timeout.ms": SESSION_MS}
        zookeeper = ZooKeeper(data_dir=directory / "zookeeper", sync_writes=True)
        self._local = LocalCluster(BROKERS, directory, zookeeper, overrides=overrides)

    @property
    def bootstrap(self) -> str:
        return self._local.bootstrap

    def start(self) -> None:
        self._local.start()
        self.is_running = True

    def stop(self) -> None:
        self.is_running = False
        self._local.stop()

    def pids(self) -> list[int]:
        assert self._local.zookeeper is not None
        return [self._local.zookeeper.pid, *(broker.pid for broker in self._local.brokers.values())]

    def pid_of(self, broker_id: int) -> int:
        return self._local.brokers[broker_id].pid

    def stop_broker(self, broker_id: int) -> None:
        self._local.brokers[broker_id].stop()

    def kill_broker(self, broker_id: int) -> None:
        self._local.brokers[broker_id].kill()

    def start_broker(self, broker_id: int) -> None:
        self._local.brokers[broker_id].start()
        self._local.brokers[broker_id].wait_until_ready()


class KafkaCluster:
    name = KAFKA

    def __init__(self, directory: Path) -> None:
        self.is_running = False
        self.directory = directory
        self._servers = {id_: KafkaServer(directory / f"broker-{id_}") for id_ in range(1, BROKERS + 1)}
        voters = [f"{id_}@127.0.0.1:{server.controller_port}" for id_, server in self._servers.items()]
        for id_, server in self._servers.items():
            server.overrides = {
                **OVERRIDES,
                **replication_settings(BROKERS),
                "node.id": str(id_),
                "controller.quorum.voters": ",".join(voters),
                "broker.session.timeout.ms": SESSION_MS,
                "offsets.topic.num.partitions": "50",
            }

    @property
    def bootstrap(self) -> str:
        return ",".join(server.bootstrap for server in self._servers.values())

    def start(self) -> None:
        for server in self._servers.values():
            server.format_once()
        # Side by side, as ours: a voter waits for the others before it listens.
        for server in self._servers.values():
            server.launch()
        for server in self._servers.values():
            server.wait_for_listener()
        self.is_running = True

    def stop(self) -> None:
        """All at once: a quorum of one cannot end cleanly."""
        self.is_running = False
        running = [server for server in self._servers.values() if server.process is not None]
        for server in running:
            os.kill(server.pid, signal.SIGTERM)
        for server in running:
            server.stop()

    def pids(self) -> list[int]:
        return [server.pid for server in self._servers.values()]

    def pid_of(self, broker_id: int) -> int:
        return self._servers[broker_id].pid

    def stop_broker(self, broker_id: int) -> None:
        self._servers[broker_id].stop()

    def kill_broker(self, broker_id: int) -> None:
        self._servers[broker_id].stop(signal.SIGKILL)

    def start_broker(self, broker_id: int) -> None:
        self._servers[broker_id].start()


CLUSTERS: dict[str, type[OurCluster] | type[KafkaCluster]] = {OURS: OurCluster, KAFKA: KafkaCluster}


def memory_bytes(peer: ClusterPeer) -> int:
    return sum(map(resident_bytes, peer.pids()))


def leaders_of(admin: barnabas.Admin, topic: str) -> list[int]:
    """The leader of each partition; -1 where there is none."""
    partitions = admin.describe_topics([topic])[topic].partitions
    return [-1 if info.leader is None else info.leader.id for info in partitions]


def is_in_sync(admin: barnabas.Admin, topic: str) -> bool:
    partitions = admin.describe_topics([topic])[topic].partitions
    return all(info.leader is not None and len(info.in_sync_replicas) == BROKERS for info in partitions)


def wait_until_in_sync(admin: barnabas.Admin, topic: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        with contextlib.suppress(KafkaError):
            if is_in_sync(admin, topic):
                return
        if time.monotonic() > deadline:
            raise RuntimeError(f"the replicas of {topic} are not in sync after {WAIT_SECONDS_MAX:.0f} s")
        time.sleep(0.01)


@contextlib.contextmanager
def replicated_topic(
    peer: ClusterPeer, name: str, partitions: int = 1, assignments: Mapping[int, list[int]] | None = None
) -> Iterator[str]:
    """A topic with three replicas, all in sync; `assignments` says on which brokers.

    It is deleted at the end, and its files are gone before anything else is measured: the next round then
    writes to memory that was freed shortly before, not to memory that the host of a virtual machine has to
    find first."""
    topic = f"{name}-{time.monotonic_ns()}"
    with barnabas.Admin(bootstrap_servers=peer.bootstrap) as admin:
        placed = NewTopic(topic, assignments=assignments or {})
        admin.create_topics([placed if assignments else NewTopic(topic, partitions, BROKERS)])
        wait_until_in_sync(admin, topic)
        try:
            yield topic
        finally:
            admin.delete_topics([topic])
            _wait_until_removed(peer, topic)


def _wait_until_removed(peer: ClusterPeer, topic: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while any(peer.directory.glob(f"broker-*/**/{topic}-*")):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{peer.name} still has files of {topic} after {WAIT_SECONDS_MAX:.0f} s")
        time.sleep(0.05)


def leader_target(peer: ClusterPeer, topic: str) -> Target:
    """The broker that leads partition 0."""
    with barnabas.Admin(bootstrap_servers=peer.bootstrap) as admin:
        leader = admin.describe_topics([topic])[topic].partitions[0].leader
    if leader is None:
        raise RuntimeError(f"{topic} has no leader")
    return Target(f"{leader.host}:{leader.port}", peer.pid_of(leader.id))
