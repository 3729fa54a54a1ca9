"""One line for each test of the catalogue (T01 to T38): what its rounds in one run have shown."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from tests.jepsen.results import Row

WIDTH = 100
# How long it takes until all replicas are in sync depends on how much there is to copy.
NOT_RECOVERY = "in sync"
NUMBER = re.compile(r"t(\d\d)_")


@dataclass(frozen=True)
class Outcome:
    """The rounds of one test in one run. A round is a seed: all variants of the test that ran with it."""

    test: str  # such as t01_leader_killed
    peer: str
    rounds: int
    passed: int
    # The longest time until the cluster was writable again, of each round.
    recoveries: tuple[float, ...]
    operations: int
    date: str  # UTC
    commit: str
    # How long a run took that has no rounds.
    hours: float | None = None

    @property
    def failed(self) -> int:
        return self.rounds - self.passed

    @property
    def number(self) -> str:
        return number_of(self.test) or ""

    @property
    def recovery_seconds_median(self) -> float | None:
        return statistics.median(self.recoveries) if self.recoveries else None

    @property
    def recovery_seconds_max(self) -> float | None:
        return max(self.recoveries, default=None)


def number_of(test: str) -> str | None:
    """T01 of t01_leader_killed."""
    found = NUMBER.match(test)
    return found and f"T{found[1]}"


def outcomes(rows: Iterable[Row]) -> list[Outcome]:
    """The rows are those of one run; the outcomes are in the order of their numbers."""
    by_test: dict[str, list[Row]] = {}
    for row in rows:
        if number_of(row["test"]):
            by_test.setdefault(row["test"], []).append(row)
    return [_outcome(test, by_test[test]) for test in sorted(by_test)]


def _outcome(test: str, rows: list[Row]) -> Outcome:
    functions = [row for row in rows if "function" in row]
    stages = [row for row in rows if "function" not in row]
    seeds = {row["seed"] for row in functions if row["seed"] is not None} or {0}
    # A function without a seed runs once. It belongs to the first round.
    failed = {row["seed"] or min(seeds) for row in functions if not row["ok"]}
    longest: dict[int, float] = {}
    for row in stages:
        for name, seconds in row["recovery_seconds"].items():
            if not name.startswith(NOT_RECOVERY):
                longest[row["seed"]] = max(seconds, longest.get(row["seed"], 0.0))
    operations = sum(row["counts"]["operations"] for row in stages if row["counts"])
    hours = [row["figures"]["hours"] for row in stages if "hours" in row["figures"]]
    last = rows[-1]
    return Outcome(
        test,
        last["peer"],
        len(seeds),
        len(seeds - failed),
        tuple(longest.values()),
        operations,
        last["date"],
        last["commit"],
        max(hours, default=None),
    )


def table_of(found: Iterable[Outcome]) -> Table:
    table = Table(caption="recovery: the longest time of a round until all partitions were writable again")
    table.add_column("test")
    for title in ("rounds", "passed", "failed", "median recovery", "longest", "operations"):
        table.add_column(title, justify="right")
    for each in found:
        name = f"{each.number} {each.test.partition('_')[2].replace('_', ' ')}"
        failed = f"[red]{each.failed}[/]" if each.failed else "0"
        figures = (_seconds(each.recovery_seconds_median), _seconds(each.recovery_seconds_max))
        operations = f"{each.operations:,}" if each.operations else "-"
        table.add_row(name, str(each.rounds), str(each.passed), failed, *figures, operations)
    return table


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


def text_of(found: Iterable[Outcome], *, has_colours: bool = False) -> str:
    console = Console(width=WIDTH, force_terminal=has_colours, color_system="auto" if has_colours else None)
    with console.capture() as captured:
        console.print(table_of(found))
    return captured.get()
