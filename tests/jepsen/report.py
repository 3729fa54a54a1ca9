"""Writes docs/reliability.md: `python -m tests.jepsen.report`.

The command takes the results of tests from build/jepsen/results.jsonl into reliability.json, which is
committed, and writes the page from that. For each test and peer it takes the run with the most rounds; of
several with as many, the last one. So a result that is committed is replaced by one with as many rounds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.jepsen.catalogue import TESTS
from tests.jepsen.report_text import BEFORE_KAFKA, BEFORE_TESTS, INTRODUCTION, KINDS
from tests.jepsen.results import ROOT, Row, read_rows
from tests.jepsen.summary import Outcome, number_of, outcomes

PAGE = ROOT / "docs" / "reliability.md"
COMMITTED = Path(__file__).parent / "reliability.json"
OURS, KAFKA = "barnabas", "kafka"
COMMIT_CHARACTERS = 7


@dataclass(frozen=True)
class Result:
    """The rounds of one test on one cluster, as it is committed."""

    test: str  # such as T01
    peer: str
    rounds: int
    passed: int
    recovery_seconds_max: float | None
    operations: int
    date: str
    commit: str
    hours: float | None = None

    @classmethod
    def of(cls, outcome: Outcome) -> Result:
        return cls(
            outcome.number,
            outcome.peer,
            outcome.rounds,
            outcome.passed,
            outcome.recovery_seconds_max,
            outcome.operations,
            outcome.date,
            outcome.commit,
            outcome.hours,
        )

    @property
    def size(self) -> int:
        """A later result replaces one of the same size or a smaller one. Some minutes make no difference."""
        return self.rounds if self.hours is None else int(self.hours)


Results = dict[tuple[str, str], Result]  # by test and peer


# ---- results


def update(results: Results, rows: Iterable[Row]) -> Results:
    """With the runs in these rows."""
    updated = dict(results)
    for of_run in _runs(rows):
        for result in map(Result.of, outcomes(of_run)):
            former = updated.get((result.test, result.peer))
            if former is None or result.size >= former.size:
                updated[result.test, result.peer] = result
    return dict(sorted(updated.items()))


def _runs(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows of each run, in the order of their beginnings."""
    runs: dict[str, list[Row]] = {}
    for row in rows:
        # Rows without a run were written by an earlier version.
        if "run" in row and number_of(row["test"]):
            runs.setdefault(row["run"], []).append(row)
    for run in sorted(runs):
        yield runs[run]


def read_committed() -> Results:
    if not COMMITTED.exists():
        return {}
    found = [Result(**fields) for fields in json.loads(COMMITTED.read_text())]
    return {(result.test, result.peer): result for result in found}


def write_committed(results: Results) -> None:
    # One line for each result, so that changes are easy to read.
    lines = [json.dumps(asdict(result)) for result in results.values()]
    COMMITTED.write_text("[\n" + ",\n".join(lines) + "\n]\n")


# ---- the page


def document(results: Results) -> str:
    kinds = [(f"`{kind}`", meaning) for kind, meaning in KINDS.items()]
    parts = [
        INTRODUCTION,
        _table(("found", "meaning"), kinds),
        BEFORE_TESTS,
        _table(("test", "fault", "promise", "result", "longest recovery", "when"), list(_tests(results))),
        BEFORE_KAFKA,
        _table(
            ("test", "fault", "Barnabas", "longest recovery", "Kafka", "longest recovery", "when"),
            list(_beside_kafka(results)),
        ),
    ]
    return "\n".join(parts)


def _tests(results: Results) -> Iterator[tuple[str, ...]]:
    for test, (fault, promise, _) in TESTS.items():
        result = results.get((test, OURS))
        yield test, fault, promise, _shown(result), _recovery(result), _when(result)


def _beside_kafka(results: Results) -> Iterator[tuple[str, ...]]:
    for test, row in TESTS.items():
        if row.on_kafka:
            ours, kafka = results.get((test, OURS)), results.get((test, KAFKA))
            figures = (_shown(ours), _recovery(ours), _shown(kafka), _recovery(kafka))
            yield test, row.fault, *figures, _when(kafka)


def _shown(result: Result | None) -> str:
    if result is None:
        return "not run yet"
    if result.hours is not None:
        verdict = "passed" if result.passed == result.rounds else "**failed**"
        return f"{result.hours:.2g} hours: {verdict}"
    passed = f"{result.passed} of {result.rounds}"
    return passed if result.passed == result.rounds else f"**{passed}**"


def _recovery(result: Result | None) -> str:
    if result is None or result.recovery_seconds_max is None:
        return ""
    return f"{result.recovery_seconds_max:.1f} s"


def _when(result: Result | None) -> str:
    if result is None:
        return ""
    commit, _, is_dirty = result.commit.partition("-")
    return f"{result.date}, {commit[:COMMIT_CHARACTERS]}{' and changes' if is_dirty else ''}"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def main() -> None:
    results = update(read_committed(), read_rows())
    write_committed(results)
    PAGE.write_text(document(results))
    print(f"{PAGE.relative_to(ROOT)} has {len(results)} results")


if __name__ == "__main__":
    main()
