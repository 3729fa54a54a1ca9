"""The brokers that can be measured: Barnabas, and Apache Kafka from Maven's jars beside it."""

import contextlib
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tests.bench import frames
from tests.bench.connection import Connection
from tests.clients.broker_process import BrokerProcess
from tests.java.kafka_server import KafkaServer, free_ports

# For the row about compaction: the cleaner looks for work every half second, on both.
OVERRIDES = {"log.cleaner.backoff.ms": "500", "log.segment.delete.delay.ms": "1000"}


class Peer(Protocol):
    """A broker in a process of its own; `warms_up` when it is faster at what it has done before."""

    name: str
    warms_up: bool

    @property
    def bootstrap(self) -> str: ...

    @property
    def pid(self) -> int: ...

    def start(self) -> float:
        """Seconds from starting the process to the first answered Metadata."""

    def stop(self) -> None: ...

    def partition_directory(self, topic: str) -> Path: ...

    def metric(self, name: str) -> float | None:
        """A figure of /metrics, where the peer has one."""


def _await_metadata(bootstrap: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError), Connection(bootstrap) as connection:
            connection.ask(frames.metadata_request())
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"no Metadata from {bootstrap}")


class BarnabasPeer:
    name = "barnabas"
    warms_up = False

    def __init__(self, directory: Path, overrides: Mapping[str, str] | None = None) -> None:
        (self._metrics_port,) = free_ports(1)
        settings = {**OVERRIDES, "barnabas.metrics.port": str(self._metrics_port), **(overrides or {})}
        self._broker = BrokerProcess(directory, settings)

    @property
    def bootstrap(self) -> str:
        return self._broker.bootstrap

    @property
    def pid(self) -> int:
        return self._broker.pid

    def start(self) -> float:
        begin = time.perf_counter()
        self._broker.start()
        _await_metadata(self.bootstrap)
        return time.perf_counter() - begin

    def stop(self) -> None:
        self._broker.stop()

    def partition_directory(self, topic: str) -> Path:
        (found,) = self._broker.data_dir.rglob(f"{topic}-0")
        return found

    def metric(self, name: str) -> float | None:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics_port}/metrics", timeout=30) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith((f"{name} ", f"{name}_total ")):
                    return float(line.split()[1])
        return None


class KafkaPeer:
    name = "kafka"
    warms_up = True

    def __init__(self, directory: Path, overrides: Mapping[str, str] | None = None) -> None:
        self._server = KafkaServer(directory, {**OVERRIDES, **(overrides or {})})

    @property
    def bootstrap(self) -> str:
        return self._server.bootstrap

    @property
    def pid(self) -> int:
        return self._server.pid

    def start(self) -> float:
        self._server.format_once()  # a step of its own that Kafka's users take once, so not counted
        begin = time.perf_counter()
        self._server.start()
        _await_metadata(self.bootstrap)
        return time.perf_counter() - begin

    def stop(self) -> None:
        self._server.stop()

    def partition_directory(self, topic: str) -> Path:
        return self._server.log_dir / f"{topic}-0"

    def metric(self, name: str) -> float | None:
        return None


PEERS: dict[str, type[BarnabasPeer] | type[KafkaPeer]] = {"barnabas": BarnabasPeer, "kafka": KafkaPeer}
