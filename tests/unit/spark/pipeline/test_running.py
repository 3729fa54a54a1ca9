"""Queries that are started again because a process of Spark was late."""

from typing import Any

import pytest

from barnabas.spark.pipeline.queries import Planned
from barnabas.spark.pipeline.running import QueryFailed, Running
from barnabas.spark.queries import STARTS_MAX

LATE = RuntimeError("Python worker failed to connect back.")


def starting(errors: list[BaseException]) -> Planned:
    """A query whose start fails with these errors, one after the other."""

    def start() -> Any:
        if errors:
            raise errors.pop(0)
        return "query"

    return Planned("copies", start)


def test_a_late_start_is_tried_again() -> None:
    running = Running(starting([LATE] * (STARTS_MAX - 1)))
    running.start()
    assert running.query == "query"


def test_not_for_ever() -> None:
    with pytest.raises(QueryFailed, match=r"copies failed: Spark's Python process did not start in time"):
        Running(starting([LATE] * STARTS_MAX)).start()


def test_other_errors_are_not_tried_again() -> None:
    with pytest.raises(QueryFailed, match="copies failed: KeyError: 'id'"):
        Running(starting([KeyError("id")])).start()


def test_starts_are_counted_until_a_batch_has_ended() -> None:
    errors: list[BaseException] = [LATE] * (STARTS_MAX - 1)
    running = Running(starting(errors))
    running.start()
    running.progress.batches = 1
    errors += [LATE] * (STARTS_MAX - 1)
    running.query = None
    running.start()
    assert running.query == "query"
