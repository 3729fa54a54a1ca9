"""The brokers that can be measured: Barnabas, and Apache Kafka from Maven's jars. Each has its own process
and its own directory."""

import contextlib
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tests.bench import frames
from tests.bench.connection import Connection
from tests.bench.goals import KAFKA, OURS
from tests.bench.loads import Target
from tests.clients.broker_process import BrokerProcess
from tests.java.kafka_server import KafkaServer

from barnabas.testing.ports import free_ports

# For both brokers: the cleaner looks for work every half second, and deleted segments are removed soon.
OVERRIDES = {"log.cleaner.backoff.ms": "500", "log.segment.delete.delay.ms": "100"}
# With thousands of partitions after a kill, on a busy disk.
START_SECONDS_MAX = 900.0


class Peer(Protocol):
    """A broker that can be stopped, killed and started again on the same data."""

    name: str

    @property
    def target(self) -> Target: ...

    @property
    def is_running(self) -> bool: ...

    def start(self) -> float:
        """Seconds from starting the process to the first answered Metadata."""

    def stop(self) -> None: ...

    def kill(self) -> None:
        """Kill it, like a power failure, except that the system still writes its buffers."""

    def partition_directory(self, topic: str) -> Path: ...

    def keeps(self, topic: str) -> bool:
        """Whether there are files of the topic on the disk, also if they will be deleted soon."""

    def add_tls(self, stores: Mapping[str, str]) -> str:
        """Before the first start: a second listener, with TLS. Returns its address."""


def _await_metadata(bootstrap: str) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        with contextlib.suppress(OSError), Connection(bootstrap) as connection:
            connection.ask(frames.metadata_request())
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"no Metadata from {bootstrap}")


class BarnabasPeer:
    name = OURS

    def __init__(self, directory: Path, overrides: Mapping[str, str] | None = None) -> None:
        self._broker = BrokerProcess(directory, {**OVERRIDES, **(overrides or {})})
        self._broker.start_seconds_max = START_SECONDS_MAX

    @property
    def target(self) -> Target:
        return Target(self._broker.bootstrap, self._broker.pid)

    @property
    def is_running(self) -> bool:
        return self._broker.process is not None

    def start(self) -> float:
        begin = time.perf_counter()
        self._broker.start()
        _await_metadata(self.target.bootstrap)
        return time.perf_counter() - begin

    def stop(self) -> None:
        self._broker.stop()

    def kill(self) -> None:
        self._broker.stop(signal.SIGKILL)

    def partition_directory(self, topic: str) -> Path:
        (directory,) = self._broker.data_dir.rglob(f"{topic}-0")
        return directory

    def keeps(self, topic: str) -> bool:
        return any(self._broker.data_dir.rglob(f"{topic}*"))

    def add_tls(self, stores: Mapping[str, str]) -> str:
        plain, tls = free_ports(2)
        listeners = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{tls}"
        self._broker.overrides |= {**stores, "listeners": listeners}
        return f"127.0.0.1:{tls}"


class KafkaPeer:
    name = KAFKA

    def __init__(self, directory: Path, overrides: Mapping[str, str] | None = None) -> None:
        self._server = KafkaServer(directory, {**OVERRIDES, **(overrides or {})})
        self._server.start_seconds_max = START_SECONDS_MAX

    @property
    def target(self) -> Target:
        return Target(self._server.bootstrap, self._server.pid)

    @property
    def is_running(self) -> bool:
        return self._server.process is not None

    def start(self) -> float:
        self._server.format_once()  # Kafka's users do this once, in a separate step: it is not counted
        begin = time.perf_counter()
        self._server.start()
        _await_metadata(self.target.bootstrap)
        return time.perf_counter() - begin

    def stop(self) -> None:
        self._server.stop()

    def kill(self) -> None:
        self._server.stop(signal.SIGKILL)

    def partition_directory(self, topic: str) -> Path:
        return self._server.log_dir / f"{topic}-0"

    def keeps(self, topic: str) -> bool:
        return any(self._server.log_dir.glob(f"{topic}*"))

    def add_tls(self, stores: Mapping[str, str]) -> str:
        server = self._server
        (tls,) = free_ports(1)
        advertised = f"PLAINTEXT://{server.bootstrap},SSL://127.0.0.1:{tls}"
        server.overrides |= {
            **stores,
            "listeners": f"{advertised},CONTROLLER://127.0.0.1:{server.controller_port}",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL",
        }
        return f"127.0.0.1:{tls}"


PEERS: dict[str, type[BarnabasPeer] | type[KafkaPeer]] = {OURS: BarnabasPeer, KAFKA: KafkaPeer}
