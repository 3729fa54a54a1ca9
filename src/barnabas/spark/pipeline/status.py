"""The status of a pipeline, without Spark: from its checkpoints and the committed offsets of its groups."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from barnabas.client import Admin
from barnabas.client.errors import KafkaError
from barnabas.spark.pipeline.batch_rates import rows_per_second
from barnabas.spark.pipeline.definition import Pipeline, path_in, query_names
from barnabas.spark.pipeline.failures import Failure, LastFailure
from barnabas.spark.pipeline.letter_counts import letters_written
from barnabas.spark.pipeline.recording import Checkpoints

# Brokers have this long to answer, all together; a call gets at least the second.
ANSWER_SECONDS = 3.0
SECONDS_MIN = 0.5


class QueryStatus(NamedTuple):
    """`rows_per_second` is that of the last batch. `error` is one sentence if the query failed after it."""

    query: str
    group: str
    topic: str | None
    lag: int | None
    batches: int
    last_batch: str | None
    rows_per_second: int | None = None
    error: str | None = None


# For a table of them; an error is too long for a column.
HEADERS = ("QUERY", "GROUP", "TOPIC", "LAG", "BATCHES", "LAST-BATCH", "ROWS/S")


def table_rows(queries: Sequence[QueryStatus]) -> list[tuple[object, ...]]:
    return [each[: len(HEADERS)] for each in queries]


class Status(NamedTuple):
    """`dead_letters` are those of all runs; None if the pipeline writes none. `problem` is one sentence if
    the lag and the dead letters are not known, because no broker answered."""

    queries: list[QueryStatus]
    dead_letters: int | None = None
    problem: str | None = None


def status_of(pipeline: Pipeline, directory: Path) -> Status:
    """One entry for each query and each topic it reads. The topic is None if it has not read yet, or if no
    broker answers within a few seconds."""
    queries = _queries(pipeline, directory)
    lags: dict[str, dict[str, int]] = {}
    dead_letters: int | None = None
    problem: str | None = None
    give_up = time.monotonic() + ANSWER_SECONDS

    def seconds() -> float:
        return round(max(give_up - time.monotonic(), SECONDS_MIN), 1)

    try:
        for cluster in pipeline.clusters_of_sources():
            with Admin(cluster.settings) as admin:
                for query in queries:
                    lags.setdefault(query, {}).update(_lag(admin, pipeline.group_of(query), seconds()))
        with Admin(pipeline.cluster(None).settings) as admin:
            dead_letters = letters_written(admin, pipeline, directory, seconds())
    except KafkaError as error:
        problem = f"The lag is not known: {error.message}. Check that the broker runs."
    failure = LastFailure(pipeline, directory).read()
    entries: list[QueryStatus] = []
    for query in queries:
        checkpoint = Path(path_in(directory, pipeline.checkpoint)) / query
        batches, last, seconds_at_end = _batches(checkpoint)
        failed = _error(failure, query, seconds_at_end)
        rates = rows_per_second(checkpoint, batches - 1)
        group = pipeline.group_of(query)
        for topic, behind in sorted(lags.get(query, {}).items()):
            rate = rates.get(topic)
            entries.append(QueryStatus(query, group, topic, behind, batches, last, rate, failed))
        if not lags.get(query):
            entries.append(QueryStatus(query, group, None, None, batches, last, error=failed))
    return Status(entries, dead_letters, problem)


def _lag(admin: Admin, group: str, seconds: float) -> dict[str, int]:
    """How many records a group has not processed, by topic."""
    lag: dict[str, int] = {}
    for partition, behind in admin.lag_of(group, timeout=seconds).items():
        lag[partition.topic] = lag.get(partition.topic, 0) + behind
    return lag


def _queries(pipeline: Pipeline, directory: Path) -> list[str]:
    """The queries of the last run; before the first run, one for each sink."""
    record = Checkpoints(pipeline, directory).record()
    return [query for query, members in record.items() if members] or query_names(pipeline)


def _error(failure: Failure | None, query: str, seconds_at_end: float) -> str | None:
    """Nothing if the query has finished a batch since: then somebody runs it again."""
    if failure is None or not failure.concerns(query) or seconds_at_end > failure.time:
        return None
    return failure.text


def _batches(checkpoint: Path) -> tuple[int, str | None, float]:
    """How many batches are done, and the time of the last, also in seconds."""
    done = [path for path in checkpoint.glob("commits/*") if path.name.isdecimal()]
    if not done:
        return 0, None, 0.0
    newest = max(done, key=lambda path: int(path.name))
    seconds = newest.stat().st_mtime
    moment = datetime.fromtimestamp(seconds, UTC)
    return int(newest.name) + 1, moment.strftime("%Y-%m-%d %H:%M:%S"), seconds
