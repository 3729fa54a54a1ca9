"""The rows about starting with much on the disk, and about a second broker process beside the first."""

import contextlib
import time
from collections.abc import Iterator, Sequence

from tests.bench import frames, loads
from tests.bench.connection import await_leaders
from tests.bench.driver import Driver
from tests.bench.figures import Sample
from tests.bench.goals import OURS
from tests.bench.peers import PEERS, Peer
from tests.bench.rows import Round, Rounds, Row, beside
from tests.bench.stage import Stage, filled_topic, topic_on
from tests.bench.usage import cpu_seconds, descriptors, resident_bytes

TOPIC_PARTITIONS_MAX = 1000


def _started(peer: Peer, topics: Sequence[str], partitions: int) -> float:
    """Seconds from starting the process until every partition answers."""
    begin = time.perf_counter()
    peer.start()
    for topic in topics:
        await_leaders(peer.target.bootstrap, topic, partitions)
    return time.perf_counter() - begin


@contextlib.contextmanager
def _many_partitions(stage: Stage, like: Peer) -> Iterator[Round]:
    """Every partition has a record, and every partition must answer after a clean start and after a kill."""
    count = stage.size.partitions_on_disk
    share = min(count, TOPIC_PARTITIONS_MAX)
    with stage.disk_peer(like.name) as peer, contextlib.ExitStack() as topics:
        names = [topics.enter_context(topic_on(peer, "bench-many", share)) for _ in range(count // share)]

        def write() -> None:
            for name in names:
                stage.driver.run(loads.produce_in_turns, peer.target, name, loads.Ring(share, 1), share)

        def measure() -> Sample:
            write()
            peer.stop()
            values = {"clean_start_seconds": _started(peer, names, share)}
            values["clean_start_cpu_seconds"] = cpu_seconds(peer.target.pid)
            values["resident_megabytes"] = resident_bytes(peer.target.pid) / 1e6
            values["idle_descriptors"] = descriptors(peer.target.pid)
            write()
            values["busy_descriptors"] = descriptors(peer.target.pid)
            peer.kill()
            values["unclean_start_seconds"] = _started(peer, names, share)
            values["unclean_start_cpu_seconds"] = cpu_seconds(peer.target.pid)
            return Sample(values)

        yield measure


@contextlib.contextmanager
def _recovery(stage: Stage, like: Peer) -> Iterator[Round]:
    """One segment that was never flushed has to be read and checked after a kill. Other costs of a kill, such
    as a controller that waits for the old session to end, are measured on an empty broker and subtracted."""
    size = stage.size.recovered_bytes
    configs = {"segment.bytes": str(max(1 << 20, size + size // 10))}
    with contextlib.ExitStack() as opened:
        peer = opened.enter_context(stage.disk_peer(like.name))
        peer.kill()
        empty = peer.start()
        topic = opened.enter_context(filled_topic(stage, peer, size, configs))

        def measure() -> Sample:
            peer.kill()
            unclean = _started(peer, [topic], 1)
            return Sample(
                {
                    "megabytes_per_second": size / 1e6 / max(unclean - empty, 0.001),
                    "unclean_start_seconds": unclean,
                    "empty_start_seconds": empty,
                }
            )

        yield measure


@contextlib.contextmanager
def _two_processes(stage: Stage) -> Iterator[Rounds]:
    """p16k on one broker, then on two at once, each with a driver of its own."""
    second = PEERS[OURS](stage.memory_directory / "second")
    driver = Driver()
    pairs = [(stage.driver, stage.peer(OURS)), (driver, second)]

    def measure() -> Sample:
        with contextlib.ExitStack() as topics:
            names = [topics.enter_context(topic_on(peer, "bench-two")) for _, peer in pairs]
            records = frames.RECORDS_IN_16K
            alone = stage.driver.run(loads.produce, pairs[0][1].target, names[0], records, stage.limits)
            running = [
                each.begin(loads.produce, peer.target, name, records, stage.limits)
                for (each, peer), name in zip(pairs, names, strict=True)
            ]
            both = [each.result() for each in running]
        rate = sum(each.megabytes_per_second for each in both)
        cost = sum(each.cpu_seconds for each in both) * 1e6 / sum(each.requests for each in both)
        return Sample(
            {
                "gain": rate / alone.megabytes_per_second,
                "megabytes_per_second": alone.megabytes_per_second,
                "two_megabytes_per_second": rate,
                "cpu_us_per_request": alone.cpu_us_per_request,
                "two_cpu_us_per_request": cost,
            }
        )

    try:
        second.start()
        yield {OURS: measure}
    finally:
        driver.close()
        if second.is_running:
            second.stop()


START_ROWS = (
    Row("restart", "growth", "start and memory with 10,000 partitions on a disk", "unclean_start_seconds",
        beside(_many_partitions), warms=False, rounds=1),
    Row("recovery", "growth", "a killed broker's unflushed segment, read and checked", "megabytes_per_second",
        beside(_recovery), warms=False, rounds=1),
    Row("processes", "growth", "p16k on one broker process, then on two at once", "gain",
        _two_processes),
)  # fmt: skip
