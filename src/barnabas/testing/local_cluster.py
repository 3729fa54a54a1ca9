"""A ZooKeeper and several brokers as processes on this machine, for `barnabas cluster start` and tests."""

import shutil
import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from barnabas.client import Admin
from barnabas.client.errors import KafkaError
from barnabas.testing.broker_process import BrokerProcess
from barnabas.testing.zookeeper import ZooKeeper

JOIN_SECONDS_MAX = 60.0
POLL_SECONDS = 0.02
DESCRIBE_SECONDS_MAX = 5.0


def replication_settings(brokers: int) -> dict[str, str]:
    """Three copies of everything if there are three brokers, and writes to two of them before an
    acknowledgement, so that the loss of one broker is neither a loss of records nor the end of writing."""
    factor, in_sync_min = str(min(brokers, 3)), str(min(brokers - 1, 2) or 1)
    return {
        "default.replication.factor": factor,
        "min.insync.replicas": in_sync_min,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync_min,
    }


class LocalCluster:
    """Brokers 1 to `brokers` below `data_dir`. With a `port`, they take it and the ports after it; with 0,
    free ports. `broker_overrides` has settings that only one broker has, `environments` its environment
    variables. A `ZooKeeper` is started and stopped with the brokers; a text is the address of one that runs
    already."""

    def __init__(
        self,
        brokers: int,
        data_dir: Path,
        zookeeper: ZooKeeper | str,
        *,
        port: int = 0,
        overrides: Mapping[str, str] | None = None,
        broker_overrides: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        if brokers < 1:
            raise ValueError(f"a cluster needs at least one broker, not {brokers}")
        self.data_dir = data_dir
        self._zookeeper = zookeeper
        self._overrides = {**replication_settings(brokers), **(overrides or {})}
        self.broker_overrides = dict(broker_overrides or {})
        self._ports = {id_: port and port + id_ - 1 for id_ in range(1, brokers + 1)}
        self.environments: dict[int, dict[str, str]] = {id_: {} for id_ in self._ports}
        self.brokers: dict[int, BrokerProcess] = {}
        # A server.properties file of all brokers, for secrets.
        self.config_file: Path | None = None
        # What a client needs besides an address, if the first listener is protected.
        self.client_settings: dict[str, str] = {}

    @property
    def broker_ids(self) -> list[int]:
        return list(self._ports)

    @property
    def zookeeper(self) -> ZooKeeper | None:
        """The ZooKeeper that is started and stopped with the brokers, if there is one."""
        return self._zookeeper if isinstance(self._zookeeper, ZooKeeper) else None

    @property
    def zookeeper_connect(self) -> str:
        """The value of zookeeper.connect of all brokers."""
        return self._zookeeper.connect if isinstance(self._zookeeper, ZooKeeper) else self._zookeeper

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, for `bootstrap.servers`."""
        return ",".join(broker.address for broker in self.brokers.values())

    def start(self) -> None:
        """Return when every broker knows all others. After a failure nothing is left running."""
        with ExitStack() as undo:
            undo.callback(self.kill_all)
            self.data_dir.mkdir(parents=True, exist_ok=True)
            if self.zookeeper is not None:
                self.zookeeper.start()
            for id_, port in self._ports.items():
                self.brokers[id_] = self._broker_process(id_, port)
            self.start_brokers(self.brokers.values())
            undo.pop_all()

    def start_brokers(self, brokers: Collection[BrokerProcess]) -> None:
        """Start processes, and return when they and the others know each other."""
        # Side by side: start all of them before waiting for any.
        for broker in brokers:
            broker.start()
        for broker in brokers:
            broker.wait_until_ready()
        for broker in brokers:
            self.wait_until_joined(broker)

    def add_broker(self, broker_id: int) -> None:
        """Start one more broker."""
        self._ports[broker_id] = 0
        self.brokers[broker_id] = self._broker_process(broker_id, 0)
        self.start_brokers([self.brokers[broker_id]])

    def remove_broker(self, broker_id: int) -> None:
        """Shut a broker down, and forget it; its data stays."""
        self.brokers.pop(broker_id).stop()
        del self._ports[broker_id]

    def _broker_process(self, id_: int, port: int) -> BrokerProcess:
        own = self.broker_overrides.get(id_, {})
        settings = {"zookeeper.connect": self.zookeeper_connect, **self._overrides, **own}
        data_dir = self.data_dir_of(id_)
        environment = self.environments.setdefault(id_, {})
        process = BrokerProcess(id_, data_dir, settings, self._output_file(id_), port, environment)
        process.config_file = self.config_file
        return process

    def data_dir_of(self, broker_id: int) -> Path:
        return self.data_dir / f"broker-{broker_id}"

    def _output_file(self, broker_id: int) -> Path:
        return self.data_dir / f"broker-{broker_id}.log"

    def output_files(self) -> dict[str, Path]:
        """The files that get what the processes print, by the name of the process."""
        files = {f"broker {id_}": self._output_file(id_) for id_ in self._ports}
        return files if self.zookeeper is None else {"zookeeper": self.zookeeper.output_file, **files}

    def wait_until_joined(self, broker: BrokerProcess) -> None:
        """Return when this broker knows all brokers that run and are not paused."""
        expected = {each.id for each in self.brokers.values() if each.is_answering}
        deadline = time.monotonic() + JOIN_SECONDS_MAX
        while not expected <= _brokers_known_at(broker.address, self.client_settings):
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"broker {broker.id} does not know all brokers {sorted(expected)} after "
                    f"{JOIN_SECONDS_MAX:.0f} s:\n{broker.output_tail()}"
                )
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Shut the brokers down cleanly, one after the other, then ZooKeeper. Each broker moves its
        leaderships to those that are left."""
        with ExitStack() as steps:
            # The last step runs first, and a failure of one does not skip the others.
            if self.zookeeper is not None:
                steps.callback(self.zookeeper.stop)
            for broker in reversed(self.brokers.values()):
                steps.callback(broker.stop)

    def kill_all(self) -> None:
        """End all processes at once."""
        with ExitStack() as steps:
            if self.zookeeper is not None:
                steps.callback(self.zookeeper.stop)
            for broker in self.brokers.values():
                steps.callback(broker.kill)

    def remove_data(self) -> None:
        shutil.rmtree(self.data_dir, ignore_errors=True)

    def description(self) -> dict[str, object]:
        """How to reach and restart each process, for the ready file of `barnabas cluster start`."""
        pid = None if self.zookeeper is None else self.zookeeper.pid
        return {
            "bootstrap": self.bootstrap,
            "zookeeper": {"connect": self.zookeeper_connect, "pid": pid},
            "brokers": [
                {
                    "id": broker.id,
                    "port": broker.port,
                    "pid": broker.pid,
                    "data_dir": str(broker.data_dir),
                    "command": broker.command,
                }
                for broker in self.brokers.values()
            ],
        }


def _brokers_known_at(address: str, settings: Mapping[str, str]) -> set[int]:
    """The brokers that the broker at this address knows; none while it knows no controller."""
    # A new client each time: after its first answer a client may ask another broker.
    with suppress(KafkaError), Admin({**settings, "bootstrap.servers": address}) as admin:
        cluster = admin.describe_cluster(timeout=DESCRIBE_SECONDS_MAX)
        if cluster.controller is not None:
            return {node.id for node in cluster.nodes}
    return set()
