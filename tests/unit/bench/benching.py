"""Invented runs, for tests of everything that uses the results of a run."""

from collections.abc import Mapping, Sequence

from tests.bench.goals import KAFKA, OURS, Goal
from tests.bench.results import Result, RowResult, Run

RATE, COST = "megabytes_per_second", "cpu_us_per_request"
Rounds = Sequence[Mapping[str, float]]


def rates(*values: float) -> Rounds:
    return [{RATE: value} for value in values]


def row(ours: Rounds, kafka: Rounds | None = None, *, name: str = "p16k", goal: float = 4.0) -> RowResult:
    results = [Result(OURS, ours), *([] if kafka is None else [Result(KAFKA, kafka)])]
    return RowResult(name, "broker", "some work", RATE, [Goal(RATE, goal)], results)


def run(*rows: RowResult, date: str = "2026-01-01T10:00:00") -> Run:
    return Run(date, {"cores": "2"}, {"python": "3.11", "commit": "abc"}, {"rounds": 3}, rows)
