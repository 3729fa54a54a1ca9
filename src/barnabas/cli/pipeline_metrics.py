"""The metrics of a running pipeline for Prometheus: `barnabas pipeline run FILE --metrics-port 9405`.

They are those of this process: what its queries did since it was started. Only dead letters are counted over
all runs."""

import asyncio
import html
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.metrics import exposition
from barnabas.broker.metrics.families import Family, counters, gauges, labels
from barnabas.broker.metrics.process import release
from barnabas.broker.metrics.server import Check, MetricsServer
from barnabas.client import Admin
from barnabas.client.errors import KafkaError
from barnabas.client.runtime import IoThread
from barnabas.spark.pipeline.definition import Pipeline
from barnabas.spark.pipeline.letter_counts import letters_written
from barnabas.spark.pipeline.progress import FAILED, STATES, QueryProgress

LOGGER = logging.getLogger(__name__)
PREFIX = "barnabas_pipeline_"
ANSWER_SECONDS, FRESH_SECONDS = 2.0, 5.0
PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Pipeline {name}</title></head>
<body>
<h1>Pipeline {name}</h1>
<p>Barnabas {version}. This port serves the metrics of the pipeline for Prometheus:
<a href="/metrics">/metrics</a>. <a href="/health">/health</a> fails when a query has failed.</p>
</body>
</html>
"""


class Number(NamedTuple):
    """A metric with one sample for each query that has a value."""

    name: str
    text: str
    value: Callable[[QueryProgress], float | None]


COUNTERS = (
    Number("rows", "Rows read", lambda each: each.rows),
    Number("bytes", "Bytes read, as stored in the log (an estimate)", lambda each: each.bytes),
    Number("batches", "Batches finished", lambda each: each.batches),
    Number("processing_seconds", "Time in finished batches", lambda each: each.processing_seconds),
)
GAUGES = (
    Number("rows_per_second", "Rows per second in the last batch", lambda each: each.rows_per_second),
    Number("batch_seconds", "Duration of the last batch", lambda each: each.batch_ms / 1000),
    Number("last_batch_timestamp_seconds", "When the last batch ended", lambda each: each.last_batch_time),
    Number(
        "behind_seconds",
        "About how long the query needs for the records after its last batch",
        lambda each: (each.seconds_behind or 0.0) if each.lag is not None else None,
    ),
)


def collect(pipeline: str, progress: list[QueryProgress], dead_letters: int | None) -> Iterator[Family]:
    """The metrics of a pipeline."""

    def rows(number: Number) -> Iterator[tuple[str, float]]:
        for each in progress:
            value = number.value(each)
            if value is not None:
                yield labels(pipeline=pipeline, query=each.name), value

    for number in COUNTERS:
        yield counters(PREFIX + number.name, number.text, rows(number))
    for number in GAUGES:
        yield gauges(PREFIX + number.name, number.text, rows(number))
    if dead_letters is not None:
        text = "Dead letters of all runs"
        yield counters(PREFIX + "dead_letters", text, [(labels(pipeline=pipeline), dead_letters)])
    yield gauges(
        PREFIX + "lag",
        "Records after the last batch, by topic",
        [
            (labels(pipeline=pipeline, query=each.name, topic=topic), lag)
            for each in progress
            for topic, lag in (each.lag or {}).items()
        ],
    )
    yield gauges(
        PREFIX + "state",
        "1 for the state that the query is in",
        [
            (labels(pipeline=pipeline, query=each.name, state=state), int(state == each.state))
            for each in progress
            for state in STATES
        ],
    )


class DeadLetters:
    """The number of dead letters. The brokers are asked when somebody scrapes, but not more often than every
    few seconds."""

    def __init__(self, pipeline: Pipeline, directory: Path) -> None:
        self._pipeline = pipeline
        self._directory = directory
        self._asked = -FRESH_SECONDS
        self._count: int | None = None

    def count(self) -> int | None:
        """None if the pipeline writes none, or if no broker answers."""
        if time.monotonic() - self._asked >= FRESH_SECONDS:
            self._asked = time.monotonic()
            self._count = self._ask()
        return self._count

    def _ask(self) -> int | None:
        if self._pipeline.dead_letters is None:
            return None
        try:
            with Admin(self._pipeline.cluster(None).settings) as admin:
                return letters_written(admin, self._pipeline, self._directory, ANSWER_SECONDS)
        except KafkaError as error:
            LOGGER.warning("The dead letters cannot be counted: %s", error)
            return None


def _health(progress: list[QueryProgress]) -> Iterator[Check]:
    """One check for each query: it fails if the query has ended with an error."""
    for each in progress:
        yield Check(each.name, "the query has failed" if each.state == FAILED else None, each.state)


class Served(NamedTuple):
    """Metrics that are served: set `progress[:]` to the newest; `address` is where they are."""

    progress: list[QueryProgress]
    address: str


@contextmanager
def served_metrics(pipeline: Pipeline, directory: Path, host: str, port: int) -> Iterator[Served]:
    """Serve metrics while the block runs; with port 0 the system chooses one."""
    progress: list[QueryProgress] = []
    letters = DeadLetters(pipeline, directory)

    async def scrape(*, open_metrics: bool, gzip: bool) -> bytes:
        dead_letters = await asyncio.to_thread(letters.count)
        collected = collect(pipeline.name, list(progress), dead_letters)
        return await exposition.write(collected, open_metrics=open_metrics, gzip=gzip)

    page = PAGE.format(name=html.escape(pipeline.name), version=release())
    server = MetricsServer(scrape, lambda: page, {"/health": partial(_health, progress)})
    thread = IoThread("barnabas-metrics").start()
    try:
        bound = thread.call(server.start(host, port))
        yield Served(progress, f"http://{host}:{bound}/metrics")
        thread.call(server.stop())
    finally:
        thread.stop()
