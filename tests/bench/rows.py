"""The rows of the table: which load runs on which topic, and the goal that stands beside its figure."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.bench import frames, loads
from tests.bench.compaction import produce_beside_compaction
from tests.bench.connection import create_topic, delete_topic
from tests.bench.loads import Limits, Tick
from tests.bench.peers import Peer
from tests.bench.usage import Load, cpu_seconds, resident_bytes

GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything: short by default, the whole of it with --full."""

    seconds: float = 3.0
    bytes_max: int = GIGABYTE
    latency_count: int = 5000
    compacted_bytes: int = 200_000_000
    soak_bytes: int = 0
    starts: int = 3


FULL = Size(seconds=10.0, bytes_max=4 * GIGABYTE, latency_count=20_000, compacted_bytes=GIGABYTE,
            soak_bytes=10 * GIGABYTE, starts=5)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    row: str
    work: str
    figures: tuple[str, ...]
    goal: str = ""


@dataclass(slots=True)
class Bench:
    """One peer, started, and the figures it has given so far."""

    peer: Peer
    size: Size
    tick: Tick
    figures: list[Figure] = field(default_factory=list)

    @property
    def limits(self) -> Limits:
        return Limits(self.size.seconds, self.size.bytes_max)


Row = Callable[[Bench], Iterator[Figure]]


def _throughput(load: Load) -> tuple[str, ...]:
    return (
        f"{load.megabytes_per_second:,.0f} MB/s",
        f"{load.requests_per_second:,.0f} req/s",
        f"{load.cpu_us_per_request:,.0f} us CPU/req",
        f"{load.cpu_seconds_per_gigabyte:.2f} s CPU/GB",
    )


def _latency(found: loads.Latencies) -> tuple[str, ...]:
    return (f"p50 {found.p50_us:,.0f} us", f"p99 {found.p99_us:,.0f} us")


def _produce(bench: Bench, row: str, records: int, partitions: int = 1) -> Load:
    topic = f"bench-{row}"
    create_topic(bench.peer.bootstrap, topic, partitions)
    batch = frames.value_batch(records)
    loads.produce(bench.peer, topic, batch, bench.limits, bench.tick, partitions)
    load = loads.produce(bench.peer, topic, batch, bench.limits, bench.tick, partitions)
    delete_topic(bench.peer.bootstrap, topic)
    return load


def produce_16k(bench: Bench) -> Iterator[Figure]:
    work = "1 connection, 5 in flight, 16 KB batches, acks=all"
    load = _produce(bench, "p16k", frames.RECORDS_IN_16K)
    yield Figure("p16k", work, _throughput(load), "<= 60 us CPU/req")


def produce_1m(bench: Bench) -> Iterator[Figure]:
    load = _produce(bench, "p1m", frames.RECORDS_IN_1M)
    yield Figure("p1m", "same, 1 MB batches", _throughput(load), "<= 1.0 s CPU/GB")


def produce_8x16k(bench: Bench) -> Iterator[Figure]:
    load = _produce(bench, "p8x16k", frames.RECORDS_IN_16K, partitions=8)
    yield Figure("p8x16k", "8 connections, 8 partitions, 16 KB", _throughput(load))


def produce_small(bench: Bench) -> Iterator[Figure]:
    load = _produce(bench, "small", 1)
    yield Figure("small", "1 connection, 5 in flight, 1 record a batch", _throughput(load)[1:3])


def fetch_rows(bench: Bench) -> Iterator[Figure]:
    """Both rows read the same topic of 16 KB batches, from the page cache."""
    topic = "bench-fetch"
    create_topic(bench.peer.bootstrap, topic)
    fill = Limits(60, bench.size.bytes_max)
    loads.produce(bench.peer, topic, frames.value_batch(frames.RECORDS_IN_16K), fill, bench.tick)
    for row, bytes_max in (("fetch", 1_048_576), ("fetch4", 4_194_304)):
        warm = Limits(bench.size.seconds / 3, bench.size.bytes_max)
        loads.fetch(bench.peer, topic, bytes_max, warm, lambda part: None)
        limits = Limits(bench.size.seconds, 1000 * GIGABYTE)
        load = loads.fetch(bench.peer, topic, bytes_max, limits, bench.tick)
        work = f"1 connection, {bytes_max >> 20} MB a fetch, page cache"
        yield Figure(row, work, _throughput(load), "<= 0.5 s CPU/GB")
    delete_topic(bench.peer.bootstrap, topic)


def latency_rows(bench: Bench) -> Iterator[Figure]:
    topic = "bench-latency"
    create_topic(bench.peer.bootstrap, topic)
    count = bench.size.latency_count

    def going_on(done: int) -> bool:
        bench.tick(done / count)
        return done < count

    loads.acknowledged(bench.peer, topic, lambda done: done < count // 5)
    found = loads.acknowledged(bench.peer, topic, going_on)
    yield Figure("ack", "one record in flight, acks=all", _latency(found))
    found = loads.end_to_end(bench.peer, topic, count // 2, bench.tick)
    yield Figure("e2e", "record sent to record in a waiting fetch", _latency(found))
    delete_topic(bench.peer.bootstrap, topic)


def start_rows(bench: Bench) -> Iterator[Figure]:
    """Leaves the peer running; its idle memory is taken before any load."""
    times = []
    for turn in range(bench.size.starts):
        if turn:
            bench.peer.stop()
        times.append(bench.peer.start())
        bench.tick((turn + 1) / bench.size.starts)
    cpu = cpu_seconds(bench.peer.pid)
    shown = (f"{sorted(times)[len(times) // 2]:.2f} s", f"best {min(times):.2f} s", f"{cpu:.2f} s CPU")
    yield Figure("start", "process start to first answered Metadata", shown, "< 0.4 s")
    time.sleep(1)
    idle = resident_bytes(bench.peer.pid)
    yield Figure("memory", "resident, idle", (f"{idle / 1e6:,.0f} MB",), "< 70 MB")


def memory_after(bench: Bench) -> Iterator[Figure]:
    loaded = resident_bytes(bench.peer.pid)
    yield Figure("memory", "resident, after the load", (f"{loaded / 1e6:,.0f} MB",), "flat")


def soak(bench: Bench) -> Iterator[Figure]:
    """Gigabytes in and out of one topic that keeps only the last of them; the memory after each."""
    if not bench.size.soak_bytes:
        return
    topic = "bench-soak"
    create_topic(bench.peer.bootstrap, topic, retention_bytes=str(GIGABYTE), segment_bytes=str(100_000_000))
    batch = frames.value_batch(frames.RECORDS_IN_16K)
    sizes = []
    rounds = bench.size.soak_bytes // GIGABYTE
    for turn in range(rounds):
        loads.produce(bench.peer, topic, batch, Limits(600, GIGABYTE), lambda part: None)
        _fetch_latest_gigabyte(bench, topic)
        sizes.append(resident_bytes(bench.peer.pid) / 1e6)
        bench.tick((turn + 1) / rounds)
    shown = (
        f"after the first {sizes[0]:,.0f} MB",
        f"last {sizes[-1]:,.0f} MB",
        f"largest {max(sizes):,.0f} MB",
    )
    yield Figure("soak", f"resident, {rounds} GB in and out", shown, "flat")
    delete_topic(bench.peer.bootstrap, topic)


def _fetch_latest_gigabyte(bench: Bench, topic: str) -> None:
    per_gigabyte = GIGABYTE // (frames.RECORD_BYTES * frames.RECORDS_IN_16K) * frames.RECORDS_IN_16K
    limits = Limits(600, GIGABYTE)
    loads.fetch_from_end(bench.peer, topic, per_gigabyte, limits)


def compaction_rows(bench: Bench) -> Iterator[Figure]:
    found = produce_beside_compaction(bench.peer, bench.size.compacted_bytes, bench.tick)
    size = f"{bench.size.compacted_bytes / 1e6:,.0f} MB"
    yield Figure("ack-alone", "one record in flight, before the compaction", _latency(found.alone))
    beside = (*_latency(found.beside), f"{found.seconds:.1f} s", f"{found.bytes_after / 1e6:,.0f} MB left")
    yield Figure("ack-compact", f"same while {size} are compacted beside it", beside, "like ack-alone")


# What a peer that warms up goes through once before anything is measured.
WARMING = ("p16k", "p1m", "p8x16k", "small", "fetch", "latency")
ROWS: dict[str, Row] = {
    "p16k": produce_16k,
    "p1m": produce_1m,
    "p8x16k": produce_8x16k,
    "small": produce_small,
    "fetch": fetch_rows,
    "latency": latency_rows,
    "memory": memory_after,
    "soak": soak,
    "compaction": compaction_rows,
}
