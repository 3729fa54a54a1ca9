"""What a run has shown: a text for people, a line of build/jepsen/results.jsonl for docs/reliability.md."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.jepsen.checker import Counts, Verdict

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "jepsen"
RESULTS = OUTPUT / "results.jsonl"
PEER = os.environ.get("PEER", "barnabas")


def rounds() -> int:
    """How often each test runs, each time with another seed."""
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

    def row(self) -> dict[str, object]:
        return {
            "test": self.test,
            "peer": PEER,
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
            "commit": commit(),
        }

    def append(self) -> None:
        OUTPUT.mkdir(parents=True, exist_ok=True)
        with RESULTS.open("a") as file:
            file.write(json.dumps(self.row()) + "\n")

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
