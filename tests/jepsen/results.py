"""What a run has shown: a text for people, a line of build/jepsen/results.jsonl for docs/reliability.md.

Each line of that file belongs to a run of pytest ("run"). There are two kinds of them. A Stage writes what it
has measured and found. For each test function, with its seed, there is a line with its name ("function") that
says only whether it passed: tests without a Stage have no other."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from tests.jepsen.checker import Counts, Verdict

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "jepsen"
RESULTS = OUTPUT / "results.jsonl"
PEER = os.environ.get("PEER", "barnabas")
# Several runs may write to the file at the same time.
RUN = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}-{os.getpid()}"

Row = dict[str, Any]


def rounds() -> int:
    """How many rounds each test has, each with another seed; its variants share them."""
    return int(os.environ.get("ROUNDS", "1"))


def seeds() -> list[int]:
    """SEED is the first one; to run a round again, set ROUNDS=1 and its seed."""
    first = int(os.environ.get("SEED", "1"))
    return list(range(first, first + rounds()))


@cache
def commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


def append(row: Row) -> None:
    """Write a line of the file; where it comes from is added."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    origin = {"peer": PEER, "run": RUN, "date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit()}
    with RESULTS.open("a") as file:
        file.write(json.dumps(row | origin) + "\n")


def append_function(test: str, function: str, seed: int | None, ok: bool) -> None:
    """Whether a test function has passed."""
    append({"test": test, "function": function, "seed": seed, "ok": ok})


def read_rows() -> Iterator[Row]:
    if RESULTS.exists():
        with RESULTS.open() as file:
            yield from map(json.loads, file)


@dataclass
class Report:
    test: str
    seed: int
    # What was done to the cluster, with the seconds since the start of the load.
    faults: list[str] = field(default_factory=list)
    # Seconds until the cluster was writable, or something else was as before.
    recovery: dict[str, float] = field(default_factory=dict)
    # Other figures that a test wants to keep.
    figures: dict[str, float] = field(default_factory=dict)
    counts: Counts | None = None
    kinds: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        return not self.problems

    def judge(self, verdict: Verdict) -> None:
        self.counts = verdict.counts
        for finding in verdict.findings:
            self.kinds[finding.kind] = self.kinds.get(finding.kind, 0) + 1
        if not verdict.ok:
            self.problems.append(str(verdict))

    def row(self) -> Row:
        return {
            "test": self.test,
            "seed": self.seed,
            "rounds": rounds(),
            "fault": self.faults,
            "ok": self.is_good,
            "counts": None if self.counts is None else dataclasses.asdict(self.counts),
            "found": self.kinds,
            "recovery_seconds": {name: round(value, 2) for name, value in self.recovery.items()},
            "figures": {name: round(value, 2) for name, value in self.figures.items()},
            "problems": len(self.problems),
            "seconds": round(self.seconds, 1),
        }

    def append(self) -> None:
        append(self.row())

    def __str__(self) -> str:
        lines = [f"{self.test}, seed {self.seed}: {'good' if self.is_good else 'NOT GOOD'}"]
        lines += [f"  {fault}" for fault in self.faults]
        lines += [f"  {name}: {value:.1f} s" for name, value in self.recovery.items()]
        lines += [f"  {name}: {value:g}" for name, value in self.figures.items()]
        if self.counts is not None:
            counts = self.counts
            lines.append(
                f"  {counts.operations} operations; values: {counts.committed} committed, {counts.aborted} "
                f"aborted, {counts.unknown} unknown, {counts.read} read"
            )
        lines += [f"  problem: {problem}" for problem in self.problems]
        return "\n".join(lines)
