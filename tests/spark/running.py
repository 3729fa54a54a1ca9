"""Runs streaming queries to their end, and again if Spark's Python processes were too slow."""

from collections.abc import Callable
from typing import Any

from pyspark.errors import StreamingQueryException

from barnabas.spark.queries import STARTS_MAX, was_late

WAIT_SECONDS = 180


def run_to_its_end(start: Callable[[], Any]) -> list[Any]:
    """Start a query that reads what is there and ends; returns Spark's reports of its batches."""
    for attempt in range(1, STARTS_MAX + 1):
        query = start()
        try:
            assert query.awaitTermination(WAIT_SECONDS)
            return list(query.recentProgress)
        except StreamingQueryException as error:
            if not was_late(error) or attempt == STARTS_MAX:
                raise
        finally:
            query.stop()
    raise AssertionError("the last attempt returns or raises")
