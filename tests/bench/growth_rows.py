"""The rows about growth: what partitions, connections, long logs and silent consumers cost one broker."""

import contextlib
from collections.abc import Iterator

from tests.bench import frames, loads
from tests.bench.compaction import compact, compact_beside, segment_bytes
from tests.bench.figures import Sample, percentile
from tests.bench.goals import Goal
from tests.bench.growth_starts import START_ROWS
from tests.bench.lookups import hold_silent, look_up_offsets, look_up_times
from tests.bench.peers import Peer
from tests.bench.rows import Round, Row, beside
from tests.bench.sessions import fetch_changes
from tests.bench.stage import GIGABYTE, Stage, filled_topic, topic_on

CHANGING = 10
SEGMENTS = 100


def _points(most: int) -> list[int]:
    """1, 10, 100 and so on, and the most itself."""
    powers = [10**power for power in range(6) if 10**power < most]
    return [*powers, most]


def _us(seconds: list[float], part: float) -> float:
    return percentile(sorted(seconds), part) * 1e6


def _grown(title: str, points: list[tuple[float, float]]) -> Sample:
    """The cost at the most, and how it compares with the cost at the least."""
    costs = [cost for _, cost in points]
    values = {"cpu_us_per_request": costs[-1], "growth": costs[-1] / costs[0] if costs[0] else 0.0}
    return Sample(values, series={title: points})


@contextlib.contextmanager
def _partitions(stage: Stage, idle: Peer) -> Iterator[Round]:
    peer = stage.peer(idle.name)
    with contextlib.ExitStack() as topics:
        counts = _points(stage.size.partitions_max)
        names = {count: topics.enter_context(topic_on(peer, "bench-wide", count)) for count in counts}

        def cost(count: int) -> float:
            turns, requests = loads.Ring(count, 1), stage.size.growth_requests
            load = stage.driver.run(loads.produce_in_turns, peer.target, names[count], turns, requests)
            return load.cpu_us_per_request

        yield lambda: _grown("partitions", [(count, cost(count)) for count in counts])


@contextlib.contextmanager
def _connections(stage: Stage, idle: Peer) -> Iterator[Round]:
    peer = stage.peer(idle.name)
    with topic_on(peer, "bench-connections") as topic:

        def cost(count: int, in_flight: int) -> float:
            turns, requests = loads.Ring(1, count, in_flight), stage.size.growth_requests
            load = stage.driver.run(loads.produce_in_turns, peer.target, topic, turns, requests)
            return load.cpu_us_per_request

        def measure() -> Sample:
            counts = _points(stage.size.connections_max)
            # Several requests on one connection are read and answered together; requests on several
            # connections cannot be. So the cost is measured with one and with several requests in flight.
            single = _grown("connections", [(count, cost(count, 1)) for count in counts])
            several = [(count, cost(count, loads.IN_FLIGHT)) for count in counts]
            pipelined = _grown("connections, several under way", several)
            values = {**single.values, "pipelined_growth": pipelined.values["growth"]}
            return Sample(values, series={**single.series, **pipelined.series})

        yield measure


@contextlib.contextmanager
def _lookups(stage: Stage, like: Peer) -> Iterator[Round]:
    """On a disk: ten gigabytes are more than some machines' memory."""
    size = stage.size.lookup_bytes
    configs = {"segment.bytes": str(max(1 << 20, size // SEGMENTS))}
    with stage.disk_peer(like.name) as peer, topic_on(peer, "bench-long", configs=configs) as topic:
        batches, first_ms = stage.driver.run(loads.fill, peer.target, topic, size)

        def measure() -> Sample:
            count = stage.size.lookups
            by_offset = stage.driver.run(look_up_offsets, peer.target, topic, batches, count)
            by_time = stage.driver.run(look_up_times, peer.target, topic, batches, first_ms, count)
            short = stage.driver.run(look_up_offsets, peer.target, topic, max(1, batches // SEGMENTS), count)
            middle = _us(by_offset, 0.5)
            values = {
                "by_offset_p50_us": middle,
                "by_offset_p99_us": _us(by_offset, 0.99),
                "by_time_p50_us": _us(by_time, 0.5),
                "by_time_p99_us": _us(by_time, 0.99),
                "growth": middle / _us(short, 0.5),
            }
            return Sample(values, series={"segments": [(1, _us(short, 0.5)), (SEGMENTS, middle)]})

        yield measure


@contextlib.contextmanager
def _sessions(stage: Stage, idle: Peer) -> Iterator[Round]:
    peer = stage.peer(idle.name)
    count, rounds = stage.size.session_partitions, stage.size.session_rounds

    def measure() -> Sample:
        with topic_on(peer, "bench-session", count) as topic:
            times = stage.driver.run(fetch_changes, peer.target, topic, count, CHANGING, rounds)
        return Sample(
            {
                "session_p50_us": _us(times.session_seconds, 0.5),
                "session_p99_us": _us(times.session_seconds, 0.99),
                "sessionless_p50_us": _us(times.sessionless_seconds, 0.5),
            }
        )

    yield measure


@contextlib.contextmanager
def _compaction(stage: Stage, idle: Peer) -> Iterator[Round]:
    peer = stage.peer(idle.name)
    size = stage.size.compacted_bytes
    configs = {"segment.bytes": str(segment_bytes(size)), "min.cleanable.dirty.ratio": "0.01"}

    def measure() -> Sample:
        with topic_on(peer, "bench-dirty", configs=configs) as dirty:
            load = stage.driver.run(compact, peer.target, dirty, peer.partition_directory(dirty), size)
        with topic_on(peer, "bench-dirty", configs=configs) as dirty, topic_on(peer, "bench-clean") as clean:
            directory = peer.partition_directory(dirty)
            beside = stage.driver.run(compact_beside, peer.target, dirty, clean, directory, size)
        return Sample(
            {
                "megabytes_per_second": load.megabytes_per_second,
                "cpu_seconds_per_gigabyte": load.cpu_seconds / (load.bytes / 1e9),
                "beside_megabytes_per_second": beside.bytes_before / 1e6 / max(beside.seconds, 0.001),
                "alone_p99_us": _us(beside.alone_seconds, 0.99),
                "beside_p50_us": _us(beside.beside_seconds, 0.5),
                "beside_p99_us": _us(beside.beside_seconds, 0.99),
            }
        )

    yield measure


@contextlib.contextmanager
def _silent(stage: Stage, like: Peer) -> Iterator[Round]:
    """On a new broker: memory that a used broker has already freed would hide what these connections hold."""
    count = stage.size.silent_connections

    def measure() -> Sample:
        with (
            stage.disk_peer(like.name) as peer,
            filled_topic(stage, peer, 4 << 20) as full,
            topic_on(peer, "bench-beside") as other,
        ):
            outcome = stage.driver.run(hold_silent, peer.target, full, other, count)
        held = max(0, outcome.resident_after - outcome.resident_before)
        return Sample(
            {
                "held_kilobytes_per_connection": held / 1e3 / count,
                "resident_megabytes": outcome.resident_after / 1e6,
                "alone_p99_us": _us(outcome.alone_seconds, 0.99),
                "beside_p50_us": _us(outcome.beside_seconds, 0.5),
                "beside_p99_us": _us(outcome.beside_seconds, 0.99),
            }
        )

    yield measure


@contextlib.contextmanager
def _soak(stage: Stage, idle: Peer) -> Iterator[Round]:
    peer = stage.peer(idle.name)
    turns = max(2, stage.size.soak_bytes // GIGABYTE)
    limits = loads.Limits(600, stage.size.soak_bytes // turns)

    def resident() -> float:
        with topic_on(peer, "bench-soak") as topic:
            records = frames.RECORDS_IN_16K
            stage.driver.run(loads.produce, peer.target, topic, records, limits)
            load = stage.driver.run(loads.fetch, peer.target, topic, 1 << 20, limits)
        return load.resident_bytes / 1e6

    def measure() -> Sample:
        sizes = [resident() for _ in range(turns)]
        points = [(float(turn + 1), size) for turn, size in enumerate(sizes)]
        values = {"largest_megabytes": max(sizes), "first_megabytes": sizes[0]}
        return Sample(values, series={"GB in and out": points})

    yield measure


FLAT = Goal("growth", 1.5, against=None)
GROWTH_ROWS = (
    Row("partitions", "growth", "cost of a request from 1 to 2,000 partitions", "cpu_us_per_request",
        beside(_partitions), (FLAT,)),
    Row("connections", "growth", "cost of a request from 1 to 1,000 connections", "cpu_us_per_request",
        beside(_connections), (FLAT,)),
    Row("lookup", "growth", "one batch by offset, and one offset by time, in 100 segments",
        "by_offset_p50_us", beside(_lookups), (FLAT,)),
    Row("sessions", "growth", "a fetch of 1,000 partitions of which 10 changed", "session_p50_us",
        beside(_sessions)),
    Row("compaction", "growth", "ten copies of every key, other topics beside it", "megabytes_per_second",
        beside(_compaction), warms=False, rounds=1),
    *START_ROWS,
    Row("silent", "growth", "5,000 connections that ask for 1 MB and never read", "beside_p99_us",
        beside(_silent), warms=False, rounds=1),
    Row("soak", "growth", "resident while gigabytes go in and out", "largest_megabytes",
        beside(_soak), warms=False, rounds=1),
)  # fmt: skip
