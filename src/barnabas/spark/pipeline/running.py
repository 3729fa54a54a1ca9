"""Runs a pipeline: starts its queries, watches them, stops them all when one fails or somebody says so."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from barnabas.spark.pipeline.definition import Pipeline
from barnabas.spark.pipeline.progress import QueryProgress, reports_of
from barnabas.spark.pipeline.queries import Place, Running, start_queries

WATCH_SECONDS = 0.5
Watcher = Callable[[list[QueryProgress]], object]


class QueryFailed(Exception):
    """A query ended with an error; the text is its first line, which says what happened."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(f"{name} failed: {first_line(error)}")


def first_line(error: BaseException) -> str:
    """Spark's errors carry the traces of two languages; the cause stands in one of their lines."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if ("Error: " in line or "Exception: " in line) and " at " not in line]
    return (named[-1] if named else lines[0] if lines else repr(error))[:500]


def run(
    spark: SparkSession, pipeline: Pipeline, directory: Path, *, once: bool, watch: Watcher
) -> list[QueryProgress]:
    """Until all queries have ended (once), or until KeyboardInterrupt; what was done is given back.

    Whatever happens, no query is left running."""
    place = Place(spark, pipeline, directory)
    running: list[Running] = []
    progress: list[QueryProgress] = []
    try:
        for each in start_queries(place, once):
            running.append(each)
            progress.append(QueryProgress(each.name))
            watch(progress)
        while any(each.query.isActive for each in running):
            _look(running, progress)
            watch(progress)
            time.sleep(WATCH_SECONDS)
        _look(running, progress)
        watch(progress)
    finally:
        for each in running:
            each.query.stop()
    return progress


def _look(running: list[Running], progress: list[QueryProgress]) -> None:
    for each, told in zip(running, progress, strict=True):
        told.take(reports_of(each.query))
        error = _error_of(each.query)
        if error is not None:
            told.state = "failed"
            raise QueryFailed(each.name, error) from error
        told.state = "running" if each.query.isActive else "done"


def _error_of(query: Any) -> BaseException | None:
    found: BaseException | None = query.exception()
    return found
