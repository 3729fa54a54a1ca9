"""The environment of a run: the peers, the driver, the directories, and the amount of work."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.bench import loads
from tests.bench.cluster_peers import CLUSTERS, ClusterPeer
from tests.bench.connection import create_topic, delete_topic
from tests.bench.driver import Driver
from tests.bench.loads import Limits
from tests.bench.peers import PEERS, Peer
from tests.bench.results import FOLDER

SHARED_MEMORY = Path("/dev/shm")
GIGABYTE = 1_000_000_000
REMOVAL_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Size:
    """The amount of work. With the default, all rows take about ten minutes, Kafka's included."""

    seconds: float = 1.5
    rounds: int = 3
    # Not more than the slower broker writes, too: memory that a virtual machine uses for the first time costs
    # more than everything else; memory that was freed recently does not.
    bytes_max: int = 500_000_000
    fetched_bytes: int = 500_000_000
    latency_count: int = 4000
    starts: int = 3
    client_seconds: float = 2.0
    client_fill_bytes: int = 700_000_000
    # Growth.
    partitions_max: int = 2000
    connections_max: int = 1000
    growth_requests: int = 10_000
    partitions_on_disk: int = 10_000
    lookup_bytes: int = GIGABYTE
    lookups: int = 2000
    session_partitions: int = 1000
    session_rounds: int = 200
    compacted_bytes: int = 400_000_000
    recovered_bytes: int = GIGABYTE
    silent_connections: int = 5000
    handshakes: int = 1000
    soak_bytes: int = 2 * GIGABYTE
    # Clusters.
    led_partitions: int = 1000
    missed_bytes: int = GIGABYTE


FULL = Size(seconds=5.0, rounds=5, bytes_max=4 * GIGABYTE, fetched_bytes=2 * GIGABYTE, latency_count=20_000,
            starts=5, client_seconds=5.0, growth_requests=30_000, lookup_bytes=10 * GIGABYTE, lookups=10_000,
            session_rounds=1000, compacted_bytes=GIGABYTE, recovered_bytes=1_900_000_000,
            soak_bytes=10 * GIGABYTE)  # fmt: skip
TINY = Size(seconds=0.1, rounds=2, bytes_max=4_000_000, fetched_bytes=4_000_000, latency_count=50, starts=1,
            client_seconds=0.2, client_fill_bytes=60_000_000, partitions_max=20, connections_max=20,
            growth_requests=200, partitions_on_disk=50, lookup_bytes=20_000_000, lookups=50,
            session_partitions=20, session_rounds=5, compacted_bytes=20_000_000, recovered_bytes=10_000_000,
            silent_connections=20, handshakes=20, soak_bytes=20_000_000, led_partitions=5,
            missed_bytes=10_000_000)  # fmt: skip


def changed_size(size: Size, changes: Sequence[str]) -> Size:
    """The size with changes that are given as name=number."""
    known = {each.name: each.type for each in fields(Size)}
    values: dict[str, Any] = {}
    for change in changes:
        name, _, number = change.partition("=")
        if name not in known:
            raise ValueError(f"there is no size {name}; there are {', '.join(known)}")
        values[name] = float(number) if known[name] is float else int(number)
    return replace(size, **values)


@dataclass(slots=True)
class Stage:
    """Peers are started when they are first used; at the end they are stopped and their data is deleted."""

    names: Sequence[str]
    size: Size
    memory_directory: Path
    disk_directory: Path
    driver: Driver = field(default_factory=Driver)
    _peers: dict[str, Peer] = field(default_factory=dict)
    _clusters: dict[str, ClusterPeer] = field(default_factory=dict)

    @classmethod
    def open(cls, names: Sequence[str], size: Size, data_directory: Path | None = None) -> "Stage":
        memory = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
        directory = data_directory or memory
        for folder in (FOLDER, directory):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        in_memory = Path(tempfile.mkdtemp(prefix="barnabas-bench-", dir=directory))
        return cls(names, size, in_memory, Path(tempfile.mkdtemp(prefix="data-", dir=FOLDER)))

    def __enter__(self) -> "Stage":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.driver.close()
            for peer in self._peers.values():
                peer.stop()
            for cluster in self._clusters.values():
                if cluster.is_running:
                    cluster.stop()
        finally:
            shutil.rmtree(self.memory_directory)
            shutil.rmtree(self.disk_directory)

    def peer(self, name: str) -> Peer:
        """The peer, running."""
        running = self.idle_peer(name)
        if not running.is_running:
            running.start()
        return running

    def idle_peer(self, name: str) -> Peer:
        """The peer as it is, perhaps not running: for rows that start it themselves."""
        if name not in self._peers:
            self._peers[name] = PEERS[name](self.memory_directory / name)
        return self._peers[name]

    def cluster(self, name: str) -> ClusterPeer:
        """Three brokers of the peer's kind, perhaps not running yet."""
        if name not in self._clusters:
            self._clusters[name] = CLUSTERS[name](self.memory_directory / f"cluster-{name}")
        return self._clusters[name]

    @contextlib.contextmanager
    def disk_peer(self, name: str, overrides: Mapping[str, str] | None = None) -> Iterator[Peer]:
        """Another running broker of the same kind, with its data on a disk."""
        directory = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.disk_directory))
        peer = PEERS[name](directory / "broker", overrides)
        try:
            peer.start()
            yield peer
        finally:
            if peer.is_running:
                peer.stop()
            shutil.rmtree(directory)

    @property
    def limits(self) -> Limits:
        return Limits(self.size.seconds, self.size.bytes_max)


@contextlib.contextmanager
def topic_on(
    peer: Peer, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A topic that is deleted at the end. Its files are gone before anything else is measured: removing
    gigabytes keeps a processor busy for a good part of a round."""
    name = f"{topic}-{time.monotonic_ns()}"
    create_topic(peer.target.bootstrap, name, partitions, configs)
    try:
        yield name
    finally:
        if peer.is_running:
            delete_topic(peer.target.bootstrap, name)
            deadline = time.monotonic() + REMOVAL_SECONDS_MAX
            while peer.keeps(name):
                if time.monotonic() > deadline:
                    raise RuntimeError(
                        f"{peer.name} still has files of {name}, {REMOVAL_SECONDS_MAX:.0f} s after"
                    )
                time.sleep(0.02)


@contextlib.contextmanager
def filled_topic(
    stage: Stage, peer: Peer, size: int, configs: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A topic of 16 KB batches."""
    with topic_on(peer, "bench-filled", configs=configs) as topic:
        stage.driver.run(loads.fill, peer.target, topic, size)
        yield topic
