"""The rows of `make bench-spark` that run whole pipelines: several sinks on one source, and `make run`."""

import contextlib
import functools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.figures import Sample
from tests.bench.goals import OURS, Goal
from tests.bench.peers import Peer
from tests.bench.rows import Rounds, Row
from tests.bench.stage import Stage, topic_on

import barnabas
from barnabas.spark.pipeline.definition import Pipeline, Source, Step, TableSink
from barnabas.spark.pipeline.running import run
from barnabas.spark.tables.store import store_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
SECONDS = "run_seconds"
PARTITIONS = 4
ONE, FIVE = "one sink", "five sinks"
SINKS = {ONE: 1, FIVE: 5}
SINKS_FACTOR = 2.0
# `make run` took 64 s on two quiet cores before sinks shared queries; the goal is 0.4 times that.
ORDERS_SECONDS = 25.6


def pipeline_rows(spark: "SparkSession", peer: Peer, rows: int) -> list[Row]:
    @contextlib.contextmanager
    def sinks(stage: Stage) -> Iterator[Rounds]:
        with topic_on(peer, "bench-spark-sinks", PARTITIONS) as topic:
            fill(peer.target.bootstrap, topic, rows)
            yield {
                name: functools.partial(run_pipeline, spark, peer.target.bootstrap, topic, count, rows)
                for name, count in SINKS.items()
            }

    @contextlib.contextmanager
    def orders(stage: Stage) -> Iterator[Rounds]:
        yield {OURS: run_orders}

    return [
        Row("spark-sinks", "spark", f"{rows:,} JSON rows to Delta tables, with its start", SECONDS,
            sinks, (Goal(SECONDS, SINKS_FACTOR, ONE, FIVE),)),
        Row("spark-orders", "spark", "make run", SECONDS, orders,
            (Goal(SECONDS, ORDERS_SECONDS, None),), warms=False, rounds=1),
    ]  # fmt: skip


def fill(bootstrap: str, topic: str, rows: int) -> None:
    with barnabas.Producer(bootstrap_servers=bootstrap, compression_type="lz4", linger_ms=5) as producer:
        for number in range(rows):
            value = {"id": number, "customer": f"c-{number % 500}", "amount": number % 100 / 4}
            producer.send(topic, json.dumps(value).encode(), str(number).encode())


def run_pipeline(spark: "SparkSession", bootstrap: str, topic: str, sinks: int, rows: int) -> Sample:
    """Run a pipeline with so many sinks on one source, each behind a step of its own."""
    folder = Path(tempfile.mkdtemp(prefix="bench-sinks-"))
    steps = tuple(
        Step(f"step{number}", sql=f"SELECT id, customer, amount + {number} AS amount FROM events")
        for number in range(sinks)
    )
    source = Source(topics=(topic,), decode="json", schema="id long, customer string, amount double")
    pipeline = Pipeline(
        name=folder.name,
        bootstrap=bootstrap,
        checkpoint="./state",
        sources={"events": source},
        steps=steps,
        sinks=tuple(TableSink(step.name, path=f"./{step.name}") for step in steps),
    )
    try:
        started = time.perf_counter()
        run(spark, pipeline, folder, once=True, watch=lambda progress: None)
        seconds = time.perf_counter() - started
        for sink in pipeline.sinks:
            assert isinstance(sink, TableSink)
            if (written := store_of(sink.target(folder)).count()) != rows:
                raise RuntimeError(f"the sink {sink.name} has {written} rows, not {rows}")
    finally:
        shutil.rmtree(folder)
    return Sample({SECONDS: seconds})


def run_orders() -> Sample:
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "tools.orders"], cwd=ROOT, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"make run failed: {done.stdout[-500:]}{done.stderr[-500:]}")
    return Sample({SECONDS: seconds})
