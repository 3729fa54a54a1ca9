"""Runs a pipeline: starts its queries, watches them, and stops all when one fails or on KeyboardInterrupt."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from barnabas.spark.pipeline.definition import Pipeline
from barnabas.spark.pipeline.progress import QueryProgress
from barnabas.spark.pipeline.queries import Place, Planned, planned_queries
from barnabas.spark.queries import STARTS_MAX, cause_of, reports_of, was_late

WATCH_SECONDS = 0.5
START_SECONDS_MAX = 60.0
START_POLL_SECONDS = 0.1
Watcher = Callable[[list[QueryProgress]], object]


class QueryFailed(Exception):
    """A query ended with an error; the text is its cause."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(f"{name} failed: {cause_of(error)}")


class Running:
    """One query, which is started again if Spark's Python process was too slow."""

    def __init__(self, planned: Planned) -> None:
        self._planned = planned
        self._starts = 0
        self.progress = QueryProgress(planned.name)
        self.query: Any = None

    def start(self) -> None:
        """Returns when the processes of the query have started, so that queries do not all start at once."""
        while self.query is None:
            self._starts += 1
            try:
                self.query = self._planned.start()
            except PySparkException as error:
                self._check_restart(error)
        deadline = time.monotonic() + START_SECONDS_MAX
        while self.query.isActive and time.monotonic() < deadline:
            if "nitializing" not in self.query.status["message"]:
                return
            time.sleep(START_POLL_SECONDS)

    def look(self) -> None:
        """Read the newest reports; raises QueryFailed if the query has failed."""
        self.progress.take(reports_of(self.query))
        error: BaseException | None = self.query.exception()
        if error is None:
            self.progress.state = "running" if self.query.isActive else "done"
        else:
            self._check_restart(error)
            self.query = None
            self.start()

    def _check_restart(self, error: BaseException) -> None:
        """Raise QueryFailed unless the query may be started again."""
        if not was_late(error) or self._starts >= STARTS_MAX:
            self.progress.state = "failed"
            raise QueryFailed(self._planned.name, error) from error
        self.progress.state = "starting again"

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()


def run(
    spark: SparkSession, pipeline: Pipeline, directory: Path, *, once: bool, watch: Watcher
) -> list[QueryProgress]:
    """Run until all queries have ended (once) or until KeyboardInterrupt; returns the progress.

    All queries are stopped at the end, whatever happens."""
    running = [Running(planned) for planned in planned_queries(Place(spark, pipeline, directory), once)]
    progress = [each.progress for each in running]
    try:
        for each in running:
            watch(progress)
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
