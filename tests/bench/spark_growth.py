"""The rows of `make bench-spark ROWS=growth`: a topic of JSON becomes a table, through a step that Spark
evaluates, with more and more partitions and rows. Rows a second, CPU and memory are to stay as they are.

Memory is the largest resident size of all processes: Java's, Python's and the broker's. Java takes what its
heap may have (1 GB by default) before it looks for space, so there are rounds before that do not count."""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.bench.figures import Sample
from tests.bench.goals import Goal
from tests.bench.peers import Peer
from tests.bench.rows import Rounds, Row
from tests.bench.spark_json import CPU, PARTITIONS, RATE, STEP, measure, orders_table, with_pipeline
from tests.bench.stage import Stage, topic_on
from tests.bench.usage import resident_bytes

import barnabas

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUP = "growth"
MEMORY = "largest_megabytes"
PARTITION_COUNTS = (1, 4, 16, 64)
ROW_COUNTS = (1_000_000, 5_000_000, 20_000_000, 50_000_000)
# The rows of each round of the row about partitions.
ROWS = 2_000_000
PART_ROWS = 100_000
WARM_ROUNDS = 2
LOOK_SECONDS = 0.5


def growth_rows(spark: "SparkSession", peer: Peer, rows_max: int, rounds: int) -> list[Row]:
    """Sizes take turns, so more rounds tell what grows from what is beside the run."""
    partitions = {f"{count} partitions": (count, ROWS) for count in PARTITION_COUNTS}
    rows = {f"{count // 10**6} M rows": (PARTITIONS, count) for count in ROW_COUNTS if count <= rows_max}
    work = f"{ROWS:,} JSON orders to a table, by partitions"
    return [
        replace(_row("spark-partitions", work, spark, peer, partitions), rounds=rounds),
        replace(_row("spark-rows", "JSON orders to a table, by rows", spark, peer, rows), rounds=rounds),
    ]


def _row(name: str, work: str, spark: "SparkSession", peer: Peer, sizes: dict[str, tuple[int, int]]) -> Row:
    @contextlib.contextmanager
    def opened(stage: Stage) -> Iterator[Rounds]:
        with contextlib.ExitStack() as stack:
            rounds = {}
            for size, (partitions, rows) in sizes.items():
                topic = stack.enter_context(topic_on(peer, f"bench-{name}-{partitions}-{rows}", partitions))
                fill(peer.target.bootstrap, topic, rows)
                start = functools.partial(with_pipeline, spark, peer.target.bootstrap, topic, (STEP,))
                rounds[size] = functools.partial(watched, functools.partial(measure, start, rows))
            warm_up(spark, peer, name)
            yield rounds

    least, most = next(iter(sizes)), list(sizes)[-1]
    goals = (Goal(RATE, 0.8, least, most), Goal(CPU, 1.25, least, most), Goal(MEMORY, 1.25, least, most))
    return Row(name, GROUP, work, RATE, opened, goals, warms=False)


def warm_up(spark: "SparkSession", peer: Peer, name: str) -> None:
    """With as many Python processes as cores: those stay, so the first size that is measured must not be the
    one that has fewer of them."""
    with topic_on(peer, f"bench-{name}-warm", PARTITIONS) as topic:
        fill(peer.target.bootstrap, topic, ROWS)
        start = functools.partial(with_pipeline, spark, peer.target.bootstrap, topic, (STEP,))
        for _ in range(WARM_ROUNDS):
            measure(start, ROWS)


def fill(bootstrap: str, topic: str, rows: int) -> None:
    """The same orders again and again: making them would take longer than reading them."""
    table = orders_table(range(PART_ROWS))
    with barnabas.Producer(bootstrap_servers=bootstrap, compression_type="lz4") as producer:
        for _ in range(rows // PART_ROWS):
            producer.send_batch(topic, table).result(60)


def watched(run: Callable[[], Sample]) -> Sample:
    """The figures of a round, and the memory at its largest."""
    largest, is_over = 0, threading.Event()

    def look() -> None:
        nonlocal largest
        while not is_over.wait(LOOK_SECONDS):
            largest = max(largest, resident_bytes(os.getpid()))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        sample = run()
    finally:
        is_over.set()
        watcher.join()
    return Sample({**sample.values, MEMORY: largest / 1e6})
