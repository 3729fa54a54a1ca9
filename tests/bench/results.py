"""The results of a run of the benchmark, and the JSON file that stores them (build/bench/<date>.json)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.figures import Sample, Summary, middle_curve
from tests.bench.goals import Goal, Judgement, judge

FOLDER = Path(__file__).parent.parent.parent / "build" / "bench"
FORMAT = 1
Series = Mapping[str, Sequence[Sequence[float]]]


@dataclass(frozen=True, slots=True)
class Result:
    """One contestant of a row: the figures of its rounds, or why there are none."""

    contestant: str
    rounds: Sequence[Mapping[str, float]]
    warm_rounds: int = 0
    curve_us: Sequence[float] = ()
    series: Series = field(default_factory=dict)
    failure: str = ""

    @classmethod
    def of(cls, contestant: str, samples: Sequence[Sample], warm_rounds: int, failure: str = "") -> "Result":
        curves = [sample.curve_us for sample in samples if sample.curve_us]
        return cls(
            contestant,
            [dict(sample.values) for sample in samples],
            warm_rounds,
            middle_curve(curves) if curves else [],
            samples[-1].series if samples else {},
            failure,
        )

    @property
    def summaries(self) -> dict[str, Summary]:
        names = self.rounds[0] if self.rounds else {}
        return {name: Summary.of([each[name] for each in self.rounds]) for name in names}


@dataclass(frozen=True, slots=True)
class RowResult:
    """All contestants of a row; `metric` is the main metric of the row."""

    name: str
    group: str
    work: str
    metric: str
    goals: Sequence[Goal]
    results: Sequence[Result]

    @property
    def summaries(self) -> dict[str, dict[str, Summary]]:
        return {result.contestant: result.summaries for result in self.results}

    @property
    def judgements(self) -> list[Judgement]:
        summaries = self.summaries
        return [judge(goal, summaries) for goal in self.goals]


@dataclass(frozen=True, slots=True)
class Run:
    date: str
    machine: Mapping[str, str]
    versions: Mapping[str, str]
    settings: Mapping[str, Any]
    rows: Sequence[RowResult]

    def save(self, folder: Path = FOLDER) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.date.replace(':', '-')}.json"
        path.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n")
        return path

    @property
    def row_names(self) -> set[str]:
        return {row.name for row in self.rows}


def load_run(path: Path) -> Run:
    content = json.loads(path.read_text())
    if content.pop("format", None) != FORMAT:
        raise ValueError(f"{path} is not a file of this benchmark: run it again")
    rows = [
        RowResult(
            **{
                **row,
                "goals": [Goal(**goal) for goal in row["goals"]],
                "results": [Result(**result) for result in row["results"]],
            }
        )
        for row in content.pop("rows")
    ]
    return Run(**content, rows=rows)


def last_two(folder: Path = FOLDER) -> tuple[Run, Run]:
    """The newest run, and before it the newest one that shares a row with it; the older one first."""
    runs = sorted((load_run(path) for path in folder.glob("*.json")), key=lambda run: run.date)
    if runs:
        newest = runs[-1]
        for older in reversed(runs[:-1]):
            if older.row_names & newest.row_names:
                return older, newest
        raise LookupError(f"no run before that of {newest.date} shares a row with it: run `make bench` again")
    raise LookupError(f"there is no run in {folder}: run `make bench` twice")
