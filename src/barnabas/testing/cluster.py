"""A cluster for a test: brokers and a ZooKeeper as real processes, on free ports with temporary directories.

with Cluster(brokers=3) as cluster:
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap})
    cluster.kill(cluster.leader_of(("orders", 0)))
"""

import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.client import Admin
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.client.types import TopicDescription
from barnabas.testing.broker import TEST_DEFAULTS
from barnabas.testing.broker_process import BrokerProcess
from barnabas.testing.ensemble import ZooKeeperEnsemble
from barnabas.testing.links import CLIENT, ZOOKEEPER, LinkFault, Links, Member, Way
from barnabas.testing.local_cluster import LocalCluster
from barnabas.testing.ports import ReservedPorts
from barnabas.testing.relay import Quality
from barnabas.testing.zookeeper import ZooKeeper

WAIT_SECONDS_MAX = 60.0
PROTOCOLS = "listener.security.protocol.map"
POLL_SECONDS = 0.05
# A killed broker is replaced when its session ends. It is short here, so that tests do not wait long, but not
# so short that a broker on a busy machine loses its session.
CLUSTER_TEST_DEFAULTS = {
    **TEST_DEFAULTS,
    "zookeeper.session.timeout.ms": "4000",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
}


class Cluster:
    """A cluster for a test, for use in a `with` statement.

    It has the brokers 1 to `brokers`. `overrides` are Kafka's config keys for all of them, `broker_overrides`
    those of single brokers; `racks` has a broker.rack for each. Topics have three replicas by default, and
    two must be in sync (with fewer brokers: fewer). `zookeepers` is the number of ZooKeeper servers.

    The listeners are PLAINTEXT (for the cluster's own questions; leave it unprotected), CLIENTS and BROKERS.
    For TLS and SASL, give `listener.security.protocol.map` for all three, and what the protocols need.

    `data_dir` is where the data stays when the `with` block ends."""

    def __init__(
        self,
        brokers: int = 3,
        overrides: Mapping[str, str] | None = None,
        *,
        broker_overrides: Mapping[int, Mapping[str, str]] | None = None,
        racks: Sequence[str] | None = None,
        data_dir: Path | None = None,
        zookeepers: int = 1,
    ) -> None:
        if racks is not None and len(racks) != brokers:
            raise ValueError(f"racks must have a rack for each of the {brokers} brokers, not {len(racks)}")
        self._own_dir = Path(tempfile.mkdtemp(prefix="barnabas-cluster-")) if data_dir is None else None
        directory = data_dir or self._own_dir or Path()
        self._links: Links | None = None
        self._ports: dict[int, ReservedPorts] = {}
        self._client_ports: dict[int, int] = {}
        self._ensemble = ZooKeeperEnsemble(zookeepers, data_dir=directory / "zookeeper")
        of_brokers = {id_: {"broker.rack": rack} for id_, rack in enumerate(racks or (), start=1)}
        for id_, own in (broker_overrides or {}).items():
            of_brokers[id_] = {**of_brokers.get(id_, {}), **own}
        self._broker_overrides = of_brokers
        self._protocols = (overrides or {}).get(PROTOCOLS)
        self._local = LocalCluster(
            brokers,
            directory,
            self._ensemble.connect,
            overrides={**CLUSTER_TEST_DEFAULTS, **(overrides or {})},
        )

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, for `bootstrap.servers`."""
        return ",".join(map(self.bootstrap_of, self._client_ports))

    def bootstrap_of(self, broker_id: int) -> str:
        """The address of one broker, for `bootstrap.servers`."""
        return f"127.0.0.1:{self._client_ports[broker_id]}"

    @property
    def zookeeper_connect(self) -> str:
        """The address of ZooKeeper, for `zookeeper.connect`."""
        return self._ensemble.connect

    @property
    def zookeeper(self) -> ZooKeeper:
        """The (first) ZooKeeper, which can be paused, killed and restarted."""
        return self._ensemble.servers[1]

    @property
    def zookeepers(self) -> ZooKeeperEnsemble:
        """All ZooKeeper servers."""
        return self._ensemble

    @property
    def brokers(self) -> Mapping[int, BrokerProcess]:
        """The brokers by id: their process ids, data directories and what they printed. Their addresses here
        are reached also by clients for which a link was cut."""
        return self._local.brokers

    @property
    def environments(self) -> dict[int, dict[str, str]]:
        """Environment variables that single brokers get at their next start."""
        return self._local.environments

    def data_dir_of(self, broker_id: int) -> Path:
        """Where a broker keeps its data, or will."""
        return self._local.data_dir_of(broker_id)

    @property
    def links(self) -> Links:
        """The network between the processes."""
        if self._links is None:
            raise RuntimeError("the cluster is not running")
        return self._links

    # ---- one broker

    def kill(self, broker_id: int) -> None:
        """End a broker at once (SIGKILL). The others notice when its session ends."""
        self._local.brokers[broker_id].kill()

    def stop(self, broker_id: int) -> None:
        """Shut a broker down cleanly (SIGTERM): it moves its leaderships to others first."""
        self._local.brokers[broker_id].stop()

    def pause(self, broker_id: int) -> None:
        """Stop a broker in the middle of whatever it does (SIGSTOP), until resume()."""
        self._local.brokers[broker_id].pause()

    def resume(self, broker_id: int) -> None:
        """Let a paused broker go on."""
        self._local.brokers[broker_id].resume()

    def restart(self, *broker_ids: int) -> None:
        """Start brokers again with their ports and data; stops running ones cleanly first. Returns when they
        and the others know each other."""
        brokers = [self._local.brokers[broker_id] for broker_id in broker_ids]
        for broker in brokers:
            if broker.is_running:
                broker.stop()
        self._local.start_brokers(brokers)

    def add_broker(self, broker_id: int | None = None) -> int:
        """Start one more broker, by default with the next id; returns its id."""
        broker_id = max(self._local.brokers) + 1 if broker_id is None else broker_id
        self._link(self.links, broker_id)
        self._local.add_broker(broker_id)
        return broker_id

    def remove_broker(self, broker_id: int) -> None:
        """Shut a broker down for ever. Move its partitions to others first."""
        del self._client_ports[broker_id]
        self._local.remove_broker(broker_id)
        with self.admin() as admin:
            admin.unregister_broker(broker_id)

    # ---- the network

    def cut(self, one: int | str, other: int | str, *, one_way: bool = False) -> LinkFault:
        """Cut the network between two brokers, or between a broker and "client" or "zookeeper" (or one of its
        servers, such as "zookeeper-2"), until heal() of the result or of the cluster. Nothing passes, but
        connections stay, as in a network that drops packets. With `one_way`, only bytes from `one` to `other`
        do not pass."""
        return self.links.cut(self._ways(one, other, one_way))

    def degrade(
        self, one: int | str, other: int | str, quality: Quality, *, one_way: bool = False
    ) -> LinkFault:
        """Make the network between two members slow or lossy: see `Quality`, and cut() for the members."""
        return self.links.degrade(self._ways(one, other, one_way), quality)

    def heal(self) -> None:
        """Repair all links."""
        if self._links is not None:
            self._links.heal()

    def _ways(self, one: int | str, other: int | str, one_way: bool) -> list[Way]:
        ways = [(source, target) for source in self._members(one) for target in self._members(other)]
        return ways if one_way else ways + [(target, source) for source, target in ways]

    def _members(self, name: int | str) -> list[Member]:
        servers = {f"{ZOOKEEPER}-{number}": number for number in self._ensemble.servers}
        if name == ZOOKEEPER:
            return list(servers)
        if name not in (CLIENT, *servers, *self._local.brokers):
            known = ", ".join(map(repr, (*self._local.brokers, CLIENT, ZOOKEEPER, *servers)))
            raise ValueError(f"{name!r} is not a member of this cluster; its members are {known}")
        return [name]

    # ---- what the cluster says about itself

    def leader_of(self, partition: tuple[str, int], *, seen_by: int | None = None) -> int:
        """The id of the broker that leads a partition, such as ("orders", 0); -1 if there is none. With
        `seen_by`, what this broker knows: one that was cut off may not know of a change."""
        topic, index = partition
        leader = self._described(topic, seen_by).partitions[index].leader
        return -1 if leader is None else leader.id

    def controller(self, *, seen_by: int | None = None) -> int:
        """The id of the broker that is the controller; -1 if there is none. With `seen_by`, what this broker
        knows."""
        with self.admin(seen_by) as admin:
            controller = admin.describe_cluster().controller
        return -1 if controller is None else controller.id

    def wait_until_in_sync(self, topic: str) -> None:
        """Return when all replicas of the topic are in sync and each partition has a leader."""

        def is_in_sync() -> bool:
            try:
                partitions = self._described(topic).partitions
            except KafkaError as error:
                if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                # The topic is new, and the broker that answered does not know it yet.
                return False
            return all(
                partition.leader is not None and len(partition.in_sync_replicas) == len(partition.replicas)
                for partition in partitions
            )

        self.wait_until(is_in_sync, f"all replicas of {topic} are in sync")

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Ask again until the condition holds; TimeoutError, with `what` was expected, after a minute."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"expected within {WAIT_SECONDS_MAX:.0f} s: {what}")
            time.sleep(POLL_SECONDS)

    def admin(self, broker_id: int | None = None) -> Admin:
        """A new admin client that begins with this broker, or with any; use it in a `with` block, or close
        it."""
        brokers = self._local.brokers
        if broker_id is not None:
            return Admin(bootstrap_servers=brokers[broker_id].address)
        # A client that begins with a paused broker waits for its answer.
        running = [broker.address for broker in brokers.values() if broker.is_answering]
        return Admin(bootstrap_servers=",".join(running or [self.bootstrap]))

    def _described(self, topic: str, seen_by: int | None = None) -> TopicDescription:
        with self.admin(seen_by) as admin:
            return admin.describe_topics([topic])[topic]

    # ---- start and end

    def start(self) -> Self:
        """Return when every broker knows all others."""
        links = self._links = self.make_links()
        for broker_id in self._local.broker_ids:
            self._link(links, broker_id)
        self._ensemble.start()
        self._local.start()
        return self

    def make_links(self) -> Links:
        """The network between the processes."""
        return Links(self.pids)

    def pids(self) -> dict[int, int]:
        """The process id of each running broker."""
        return {id_: broker.pid for id_, broker in self._local.brokers.items() if broker.is_running}

    def _link(self, links: Links, broker_id: int) -> None:
        """Settings with which a broker reaches ZooKeeper, and others and clients reach it, through links. Its
        first listener has no link: it is for the cluster's own questions, which no fault may delay."""
        ports = self._ports[broker_id] = ReservedPorts(3)
        port, clients_port, brokers_port = ports.numbers
        servers = [
            f"127.0.0.1:{links.add(f'{ZOOKEEPER}-{number}', server.port, broker_id)}"
            for number, server in self._ensemble.servers.items()
        ]
        self._client_ports[broker_id] = links.add(broker_id, clients_port, CLIENT)
        names = ("PLAINTEXT", "CLIENTS", "BROKERS")
        advertised = (port, self._client_ports[broker_id], links.add(broker_id, brokers_port))
        self._local.broker_overrides[broker_id] = {
            "zookeeper.connect": ",".join(servers),
            "listeners": _listeners(names, (port, clients_port, brokers_port)),
            "advertised.listeners": _listeners(names, advertised),
            PROTOCOLS: self._protocols or ",".join(f"{name}:PLAINTEXT" for name in names),
            "inter.broker.listener.name": "BROKERS",
            **self._broker_overrides.get(broker_id, {}),
        }

    def close(self) -> None:
        """End all processes. With a data_dir they are shut down cleanly; without, the data is removed."""
        with ExitStack() as steps:
            # The last step runs first, and a failure of one does not skip the others.
            if self._links is not None:
                self._links.heal()
                steps.callback(self._links.close)
                self._links = None
            if self._own_dir is not None:
                steps.callback(self._local.remove_data)
            steps.callback(self._ensemble.stop)
            steps.callback(self._local.kill_all if self._own_dir is not None else self._local.stop)

    def outputs(self) -> dict[str, str]:
        """The end of what each process printed, by its name."""
        return {f"broker {id_}": broker.output_tail() for id_, broker in self._local.brokers.items()}

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            for name, output in self.outputs().items():
                print(f"---- {name}\n{output}", file=sys.stderr)
        self.close()


def _listeners(names: Sequence[str], ports: Sequence[int]) -> str:
    return ",".join(f"{name}://127.0.0.1:{port}" for name, port in zip(names, ports, strict=True))
