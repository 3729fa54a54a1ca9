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
from barnabas.testing.links import ZOOKEEPER, Links, free_ports
from barnabas.testing.local_cluster import LocalCluster
from barnabas.testing.zookeeper import ZooKeeper

WAIT_SECONDS_MAX = 60.0
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
    """Brokers 1 to `brokers`. `overrides` are Kafka's config keys for all of them, `broker_overrides` those
    of single brokers; `racks` has a broker.rack for each. Topics have three replicas by default, and two must
    be in sync (with fewer brokers: fewer).

    `data_dir` is where the data stays when the `with` block ends."""

    def __init__(
        self,
        brokers: int = 3,
        overrides: Mapping[str, str] | None = None,
        *,
        broker_overrides: Mapping[int, Mapping[str, str]] | None = None,
        racks: Sequence[str] | None = None,
        data_dir: Path | None = None,
    ) -> None:
        if racks is not None and len(racks) != brokers:
            raise ValueError(f"racks must have a rack for each of the {brokers} brokers, not {len(racks)}")
        self._own_dir = Path(tempfile.mkdtemp(prefix="barnabas-cluster-")) if data_dir is None else None
        directory = data_dir or self._own_dir or Path()
        self._links: Links | None = None
        of_brokers = {id_: {"broker.rack": rack} for id_, rack in enumerate(racks or (), start=1)}
        for id_, own in (broker_overrides or {}).items():
            of_brokers[id_] = {**of_brokers.get(id_, {}), **own}
        self._local = LocalCluster(
            brokers,
            directory,
            ZooKeeper(data_dir=directory / "zookeeper", port=free_ports(1)[0]),
            overrides={**CLUSTER_TEST_DEFAULTS, **(overrides or {})},
            broker_overrides=of_brokers,
        )

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, for `bootstrap.servers`."""
        return self._local.bootstrap

    @property
    def zookeeper_connect(self) -> str:
        return self._local.zookeeper_connect

    @property
    def zookeeper(self) -> ZooKeeper:
        """The ZooKeeper, which can be paused, killed and restarted."""
        assert self._local.zookeeper is not None
        return self._local.zookeeper

    @property
    def brokers(self) -> Mapping[int, BrokerProcess]:
        """The brokers by id: their addresses, process ids, data directories and what they printed."""
        return self._local.brokers

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

    def restart(self, broker_id: int) -> None:
        """Start a broker again with its port and data; stops a running one cleanly first. Returns when it and
        the others know each other."""
        broker = self._local.brokers[broker_id]
        if broker.is_running:
            broker.stop()
        broker.start()
        broker.wait_until_ready()
        self._local.wait_until_joined(broker)

    # ---- the network

    def cut(self, one: int | str, other: int | str) -> None:
        """Cut the network between two brokers, or between a broker and "zookeeper", until heal(). Nothing
        passes, but connections stay, as in a network that drops packets. Clients still reach both."""
        for member in (one, other):
            if member not in (ZOOKEEPER, *self._local.brokers):
                raise ValueError(f"{member!r} is neither a broker of this cluster nor {ZOOKEEPER!r}")
        if self._links is None:
            raise RuntimeError("the cluster is not running")
        self._links.cut(one, other)

    def heal(self) -> None:
        """Repair all links that were cut."""
        if self._links is not None:
            self._links.heal()

    # ---- what the cluster says about itself

    def leader_of(self, partition: tuple[str, int], *, seen_by: int | None = None) -> int:
        """The id of the broker that leads a partition, such as ("orders", 0); -1 if there is none. With
        `seen_by`, what this broker knows: one that was cut off may not know of a change."""
        topic, index = partition
        leader = self._described(topic, seen_by).partitions[index].leader
        return -1 if leader is None else leader.id

    def controller(self) -> int:
        """The id of the broker that is the controller; -1 if there is none."""
        with self.admin() as admin:
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
        links = self._links = Links(
            lambda: {id_: each.pid for id_, each in self._local.brokers.items() if each.is_running}
        )
        own = self._local.broker_overrides
        for broker_id in self._local.broker_ids:
            own[broker_id] = {**self._link(links, broker_id), **own.get(broker_id, {})}
        self._local.start()
        return self

    def _link(self, links: Links, broker_id: int) -> dict[str, str]:
        """Settings with which a broker reaches ZooKeeper, and the others reach it, through links."""
        port, brokers_port = free_ports(2)
        for_clients = f"PLAINTEXT://127.0.0.1:{port}"
        return {
            "zookeeper.connect": f"127.0.0.1:{links.add(ZOOKEEPER, self.zookeeper.port, broker_id)}",
            "listeners": f"{for_clients},BROKERS://127.0.0.1:{brokers_port}",
            "advertised.listeners": f"{for_clients},BROKERS://127.0.0.1:{links.add(broker_id, brokers_port)}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
        }

    def close(self) -> None:
        """End all processes. With a data_dir they are shut down cleanly; without, the data is removed."""
        with ExitStack() as steps:
            if self._links is not None:
                self._links.heal()
                steps.callback(self._links.close)
                self._links = None
            if self._own_dir is not None:
                steps.callback(self._local.remove_data)
                steps.callback(self._local.kill_all)
            else:
                steps.callback(self._local.stop)

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
