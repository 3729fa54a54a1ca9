"""The clusters that the tests run on: ours, or with PEER=kafka three brokers of Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.clients.kafka_python_library import KafkaAdminClient, KafkaError
from tests.cluster.conftest import QUICK
from tests.java.kafka_server import KafkaServer
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.end_state import Expected
from tests.jepsen.network import Frames
from tests.jepsen.results import PEER
from tests.jepsen.shim import Shim

from barnabas.testing import Cluster
from barnabas.testing.broker_process import BrokerProcess
from barnabas.testing.links import CLIENT, Links
from barnabas.testing.local_cluster import LocalCluster, replication_settings
from barnabas.testing.ports import free_ports

# A dead broker is missed soon, but a busy machine does not lose sessions.
SESSION_MS = 3000
START_MS_MAX = 30_000
# A broker of Kafka that has asked a controller which was then paused waits 30 s for that answer.
CONTROLLER_SECONDS_MAX = 90.0
OVERRIDES = {
    **QUICK,
    "replica.lag.time.max.ms": "2000",
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "group.consumer.session.timeout.ms": "6000",
    "group.initial.rebalance.delay.ms": "300",
}
# Errors that brokers print when others are away, and that say nothing else.
EXPECTED: Sequence[Expected] = ()


class OurSystem(FaultyCluster):
    """`how` has the arguments of FaultyCluster."""

    def __init__(self, brokers: int = 3, overrides: Mapping[str, str] | None = None, **how: Any) -> None:
        session = {
            "zookeeper.session.timeout.ms": str(SESSION_MS),
            # A start waits longer: on a busy machine ZooKeeper may need seconds for an answer.
            "zookeeper.connection.timeout.ms": str(START_MS_MAX),
        }
        settings = {**OVERRIDES, **session, **(overrides or {})}
        super().__init__(brokers, settings, **how)
        self.session_seconds = int(settings["zookeeper.session.timeout.ms"]) / 1000
        self.expected_lines: Sequence[Expected] | None = EXPECTED

    def make_whole(self) -> None:
        """End all faults."""
        self.heal()
        for shim in self.shims.values():
            shim.heal()
        for server in self.zookeepers.servers.values():
            if server.is_running:
                server.resume()
        self.zookeepers.start()
        restart_missing(self)


def restart_missing(system: Cluster) -> None:
    for broker in system.brokers.values():
        broker.resume()
    system.restart(*(id_ for id_, broker in system.brokers.items() if not broker.is_running))


# ---- Apache Kafka


class KafkaProcess(BrokerProcess):
    """A broker of Apache Kafka, which is also one of the controllers."""

    def __init__(self, broker_id: int, directory: Path) -> None:
        self._server = KafkaServer(directory)
        port = int(self._server.bootstrap.rpartition(":")[2])
        super().__init__(broker_id, self._server.log_dir, {}, directory / "server.err", port)

    @property
    def voter(self) -> str:
        return f"{self.id}@127.0.0.1:{self._server.controller_port}"

    def configure(self, settings: Mapping[str, str]) -> None:
        self._server.overrides = dict(settings)
        self._server.format_once()

    def listeners(self, names: Sequence[str], ports: Sequence[int]) -> str:
        """Its first listener, these, and that of the controller."""
        extra = [f"{name}://127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)]
        controller = f"CONTROLLER://127.0.0.1:{self._server.controller_port}"
        return ",".join([f"PLAINTEXT://{self._server.bootstrap}", *extra, controller])

    def start(self) -> None:
        self._server.launch()
        self._process, self._is_paused = self._server.process, False

    def wait_until_ready(self) -> None:
        self._server.wait_for_listener()


class KafkaProcesses(LocalCluster):
    def _broker_process(self, id_: int, port: int) -> BrokerProcess:
        return self.processes[id_]

    @property
    def processes(self) -> dict[int, KafkaProcess]:
        if not hasattr(self, "_processes"):
            self._processes = {id_: KafkaProcess(id_, self.data_dir_of(id_)) for id_ in self.broker_ids}
        return self._processes


class KafkaSystem(Cluster):
    """Faults of processes and links are possible, those of disks, clocks and ZooKeeper are not."""

    session_seconds = SESSION_MS / 1000
    expected_lines: Sequence[Expected] | None = None
    zookeeper_connect = None  # type: ignore[assignment]

    def __init__(self, brokers: int = 3, overrides: Mapping[str, str] | None = None) -> None:
        super().__init__(brokers)
        self.shims: dict[int, Shim] = {}
        self._settings = {
            **OVERRIDES,
            **replication_settings(brokers),
            "broker.session.timeout.ms": str(SESSION_MS),
            "broker.heartbeat.interval.ms": "500",
            "offsets.topic.num.partitions": "6",
            "transaction.state.log.num.partitions": "6",
            **(overrides or {}),
        }
        self._kafka = KafkaProcesses(brokers, self._local.data_dir, "none")
        self._local = self._kafka

    def start(self) -> Self:
        links = self._links = self.make_links()
        voters = ",".join(process.voter for process in self._kafka.processes.values())
        for broker_id, process in self._kafka.processes.items():
            clients_port, brokers_port = free_ports(2)
            self._client_ports[broker_id] = links.add(broker_id, clients_port, CLIENT)
            names = ("CLIENTS", "BROKERS")
            advertised = (self._client_ports[broker_id], links.add(broker_id, brokers_port))
            kinds = ("PLAINTEXT", *names, "CONTROLLER")
            process.configure(
                {
                    **self._settings,
                    "node.id": str(broker_id),
                    "controller.quorum.voters": voters,
                    "listeners": process.listeners(names, (clients_port, brokers_port)),
                    "advertised.listeners": process.listeners(names, advertised).rpartition(",")[0],
                    "listener.security.protocol.map": ",".join(f"{kind}:PLAINTEXT" for kind in kinds),
                    "inter.broker.listener.name": "BROKERS",
                }
            )
        self._local.start()
        return self

    def make_links(self) -> Links:
        links = Links(self.pids)
        self.frames = Frames(links, self._local.broker_ids)
        return links

    def controller(self, *, seen_by: int | None = None) -> int:
        """The leader of the quorum. Metadata names any broker as the controller."""
        asked = (
            [seen_by]
            if seen_by is not None
            else [id_ for id_, each in self.brokers.items() if each.is_answering]
        )
        servers = [self.brokers[id_].address for id_ in asked]
        deadline = time.monotonic() + CONTROLLER_SECONDS_MAX
        while True:
            try:
                return _quorum_leader(servers)
            except KafkaError:
                if time.monotonic() > deadline:
                    raise

    def make_whole(self) -> None:
        self.heal()
        restart_missing(self)


def _quorum_leader(servers: Sequence[str]) -> int:
    admin = KafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=3000)
    try:
        (topic,) = admin.describe_metadata_quorum()["topics"]
    finally:
        admin.close()
    return int(topic["partitions"][0]["leader_id"])


TestedSystem = OurSystem | KafkaSystem
SYSTEMS: dict[str, Callable[..., TestedSystem]] = {"barnabas": OurSystem, "kafka": KafkaSystem}


def tested_system(**how: Any) -> TestedSystem:
    return SYSTEMS[PEER](**how)


class SharedSystem:
    """The cluster of several runs; a new one after it was discarded."""

    def __init__(self, shape: dict[str, Any]) -> None:
        self._shape = shape
        self._system: TestedSystem | None = None

    def get(self) -> TestedSystem:
        if self._system is None:
            self._system = tested_system(**self._shape)
            self._system.__enter__()
        return self._system

    @property
    def is_running(self) -> bool:
        return self._system is not None

    def discard(self) -> None:
        if self._system is not None:
            system, self._system = self._system, None
            system.close()
