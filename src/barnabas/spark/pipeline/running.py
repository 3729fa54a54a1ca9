"""Runs a pipeline: starts its queries, watches them, and stops all when one fails or on KeyboardInterrupt."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from barnabas.spark.causes import cause_of
from barnabas.spark.pipeline.definition import Pipeline
from barnabas.spark.pipeline.failures import PLANNING, LastFailure
from barnabas.spark.pipeline.progress import FAILED, STARTING_AGAIN, QueryProgress
from barnabas.spark.pipeline.queries import Place, Planned, planned_queries
from barnabas.spark.queries import STARTS_MAX, was_late

WATCH_SECONDS = 0.2
# So many queries may start at the same time; and one that takes longer than this is not waited for.
STARTING_MAX = 4
START_SECONDS_MAX = 60.0
START_POLL_SECONDS = 0.1
Watcher = Callable[[list[QueryProgress]], object]


class QueryFailed(Exception):
    """A query ended with an error; the text is its cause."""

    def __init__(self, name: str, error: BaseException) -> None:
        self.query = name
        self.cause = cause_of(error)
        self.is_planning = name == PLANNING
        super().__init__(f"{name} failed: {self.cause}")


class Running:
    """One query, which is started again if Spark's Python process was too slow."""

    def __init__(self, planned: Planned) -> None:
        self._planned = planned
        self._starts = 0
        self._batches = 0
        self.progress = QueryProgress(planned.name)
        self.query: Any = None

    def start(self) -> None:
        """Returns while the processes of the query are starting."""
        while self.query is None:
            self._starts += 1
            try:
                self.query = self._planned.start()
            except Exception as error:
                self._check_restart(error)

    def is_starting(self) -> bool:
        return bool(self.query.isActive) and "nitializing" in self.query.status["message"]

    def look(self) -> None:
        """Read the newest reports; raises QueryFailed if the query has failed."""
        self.progress.look(self.query)
        error: BaseException | None = self.query.exception()
        if error is not None:
            self._check_restart(error)
            self.query = None
            self.start()

    def _check_restart(self, error: BaseException) -> None:
        """Raise QueryFailed unless the query may be started again. Starts without a finished batch count."""
        if self.progress.batches > self._batches:
            self._batches, self._starts = self.progress.batches, 0
        if not was_late(error) or self._starts >= STARTS_MAX:
            self.progress.state = FAILED
            raise QueryFailed(self._planned.name, error) from error
        self.progress.state = STARTING_AGAIN

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()


def run(
    spark: SparkSession, pipeline: Pipeline, directory: Path, *, once: bool, watch: Watcher
) -> list[QueryProgress]:
    """Run until all queries have ended (once) or until KeyboardInterrupt; returns the progress.

    All queries are stopped at the end, whatever happens. The cause of a failure is kept for `status_of`."""
    last_failure = LastFailure(pipeline, directory)
    last_failure.forget()
    try:
        return _run(Place(spark, pipeline, directory), once, watch)
    except QueryFailed as error:
        last_failure.keep(error.query, error.cause)
        raise


def _run(place: Place, once: bool, watch: Watcher) -> list[QueryProgress]:
    running = [Running(planned) for planned in _planned(place, once)]
    progress = [each.progress for each in running]

    def show() -> None:
        """Show the progress of the queries that run, also while others start."""
        for each in running:
            if each.query is not None:
                each.progress.look(each.query)
        watch(progress)

    try:
        for number, each in enumerate(running):
            show()
            _wait_for_starts(running[:number], show)
            each.start()
        while True:
            is_over = not any(each.query.isActive for each in running)
            for each in running:
                each.look()
            watch(progress)
            if is_over and not any(each.query.isActive for each in running):
                return progress
            time.sleep(WATCH_SECONDS)
    finally:
        for each in running:
            each.stop()


def _planned(place: Place, once: bool) -> list[Planned]:
    for attempt in range(1, STARTS_MAX + 1):
        try:
            return planned_queries(place, once)
        except Exception as error:
            if not was_late(error) or attempt == STARTS_MAX:
                raise QueryFailed(PLANNING, error) from error
    raise AssertionError("the last attempt returns or raises")


def _wait_for_starts(running: Sequence[Running], meanwhile: Callable[[], object]) -> None:
    """Queries start side by side, but not all at once: each of them starts Python processes, and Spark does
    not wait long for a process."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if sum(each.is_starting() for each in running) < STARTING_MAX:
            return
        meanwhile()
        time.sleep(START_POLL_SECONDS)
