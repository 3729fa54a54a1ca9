"""What a row is, and the rows of one broker: which load runs on which topic, and the goal beside it."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tests.bench import frames, loads
from tests.bench.figures import Sample
from tests.bench.goals import Goal
from tests.bench.loads import Limits
from tests.bench.peers import Peer
from tests.bench.stage import Stage, filled_topic, topic_on
from tests.bench.usage import cpu_seconds, resident_bytes

Round = Callable[[], Sample]
Rounds = Mapping[str, Round]  # by contestant; rounds of different contestants take turns
Opening = Callable[[Stage], AbstractContextManager[Rounds]]
PeerOpening = Callable[[Stage, Peer], AbstractContextManager[Round]]
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """`metric` is the main metric: it decides whether rounds agree, and pictures show it. A row with
    `warms=False` needs no warm-up; `rounds` overrides the number of rounds in the run's size."""

    name: str
    group: str
    work: str
    metric: str
    open: Opening
    goals: tuple[Goal, ...] = ()
    warms: bool = True
    rounds: int | None = None


def beside(opening: PeerOpening) -> Opening:
    """A row that is measured on every peer of the run."""

    @contextlib.contextmanager
    def opened(stage: Stage) -> Iterator[Rounds]:
        with contextlib.ExitStack() as stack:
            yield {name: stack.enter_context(opening(stage, stage.idle_peer(name))) for name in stage.names}

    return opened


def _produce(records: int, partitions: int = 1) -> Opening:
    @contextlib.contextmanager
    def opened(stage: Stage, idle: Peer) -> Iterator[Round]:
        peer = stage.peer(idle.name)

        def measure() -> Sample:
            with topic_on(peer, "bench-produce", partitions) as topic:
                return stage.driver.run(
                    loads.produce, peer.target, topic, records, stage.limits, partitions
                ).sample()

        yield measure

    return beside(opened)


def _fetch(bytes_max: int) -> Opening:
    @contextlib.contextmanager
    def opened(stage: Stage, idle: Peer) -> Iterator[Round]:
        peer = stage.peer(idle.name)
        limits = Limits(stage.size.seconds, 1 << 50)
        with filled_topic(stage, peer, stage.size.fetched_bytes) as topic:
            yield lambda: stage.driver.run(loads.fetch, peer.target, topic, bytes_max, limits).sample()

    return beside(opened)


@contextlib.contextmanager
def _acknowledged(stage: Stage, idle: Peer) -> Iterator[Round]:
    peer = stage.peer(idle.name)
    with topic_on(peer, "bench-ack") as topic:
        count = stage.size.latency_count
        yield lambda: stage.driver.run(loads.acknowledged, peer.target, topic, count).sample()


@contextlib.contextmanager
def _end_to_end(stage: Stage, idle: Peer) -> Iterator[Round]:
    peer = stage.peer(idle.name)
    with topic_on(peer, "bench-e2e") as topic:
        count = max(1, stage.size.latency_count // 4)
        yield lambda: stage.driver.run(loads.end_to_end, peer.target, topic, count).sample()


@contextlib.contextmanager
def _start(stage: Stage, peer: Peer) -> Iterator[Round]:
    def measure() -> Sample:
        times, costs = [], []
        for _ in range(stage.size.starts):
            if peer.is_running:
                peer.stop()
            times.append(peer.start())
            costs.append(cpu_seconds(peer.target.pid))
        middle = len(times) // 2
        return Sample({"start_seconds": sorted(times)[middle], "start_cpu_seconds": sorted(costs)[middle]})

    yield measure


@contextlib.contextmanager
def _memory(stage: Stage, peer: Peer) -> Iterator[Round]:
    """Idle after a new start, then after every kind of load."""

    def measure() -> Sample:
        if peer.is_running:
            peer.stop()
        peer.start()
        time.sleep(1)
        idle = resident_bytes(peer.target.pid)
        for records in (frames.RECORDS_IN_16K, frames.RECORDS_IN_1M, 1):
            with topic_on(peer, "bench-memory") as topic:
                stage.driver.run(loads.produce, peer.target, topic, records, stage.limits)
        with filled_topic(stage, peer, stage.size.fetched_bytes) as topic:
            load = stage.driver.run(loads.fetch, peer.target, topic, MEGABYTE, stage.limits)
        return Sample({"idle_megabytes": idle / 1e6, "loaded_megabytes": load.resident_bytes / 1e6})

    yield measure


@contextlib.contextmanager
def _disk_produce(stage: Stage, like: Peer) -> Iterator[Round]:
    with stage.disk_peer(like.name) as peer:

        def measure() -> Sample:
            with topic_on(peer, "bench-produce") as topic:
                return stage.driver.run(
                    loads.produce, peer.target, topic, frames.RECORDS_IN_16K, stage.limits
                ).sample()

        yield measure


@contextlib.contextmanager
def _disk_fetch(stage: Stage, like: Peer) -> Iterator[Round]:
    size = stage.size.fetched_bytes
    with stage.disk_peer(like.name) as peer, filled_topic(stage, peer, size) as topic:

        def measure() -> Sample:
            _forget_pages(peer, topic)
            # Once through the topic, without the last portion: a second time would come from memory.
            limits = Limits(60, size - 2 * MEGABYTE)
            return stage.driver.run(loads.fetch, peer.target, topic, MEGABYTE, limits).sample()

        yield measure


def _forget_pages(peer: Peer, topic: str) -> None:
    """Make the system write the topic to the disk and drop it from memory."""
    for path in peer.partition_directory(topic).glob("*.log"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _goals(*pairs: tuple[str, float]) -> tuple[Goal, ...]:
    return tuple(Goal(metric, factor) for metric, factor in pairs)


RATE = "megabytes_per_second"
BROKER_ROWS = (
    Row("start", "broker", "process start to the first answered Metadata", "start_seconds",
        beside(_start), _goals(("start_seconds", 0.12)), warms=False, rounds=1),
    Row("memory", "broker", "resident after a start, and after loads of every kind", "loaded_megabytes",
        beside(_memory), _goals(("idle_megabytes", 0.18), ("loaded_megabytes", 0.1)), warms=False, rounds=1),
    Row("p16k", "broker", "1 connection, 5 in flight, 16 KB batches, acks=all, 1 partition", RATE,
        _produce(frames.RECORDS_IN_16K), _goals((RATE, 4.0))),
    Row("p1m", "broker", "the same with 1 MB batches", RATE,
        _produce(frames.RECORDS_IN_1M), _goals((RATE, 3.0))),
    Row("p8x16k", "broker", "8 connections, 8 partitions, 16 KB batches", RATE,
        _produce(frames.RECORDS_IN_16K, 8), _goals((RATE, 2.0))),
    Row("small", "broker", "1 connection, 5 in flight, 1 record a batch", "requests_per_second",
        _produce(1), _goals(("requests_per_second", 4.0))),
    Row("fetch", "broker", "1 connection, 1 MB a fetch, from memory", RATE,
        _fetch(MEGABYTE), _goals((RATE, 1.5))),
    Row("fetch4", "broker", "the same with 4 MB a fetch", RATE,
        _fetch(4 * MEGABYTE), _goals((RATE, 1.0))),
    Row("ack", "broker", "one record in flight, acks=all: sent to acknowledged", "p50_us",
        beside(_acknowledged), _goals(("p50_us", 0.8), ("p99_us", 1.0))),
    Row("e2e", "broker", "from sending a record to receiving it with a waiting fetch", "p50_us",
        beside(_end_to_end), _goals(("p50_us", 0.5), ("p99_us", 0.4))),
    Row("p16k-disk", "broker", "p16k with the data on a disk", RATE, beside(_disk_produce)),
    Row("fetch-disk", "broker", "fetch from a disk, nothing of it in memory", RATE, beside(_disk_fetch)),
)  # fmt: skip
