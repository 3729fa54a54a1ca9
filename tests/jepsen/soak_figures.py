"""What a long run has shown: operations, faults, memory and descriptors over time, and clean stops."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from tests.jepsen import end_state
from tests.jepsen.checker import Counts
from tests.jepsen.end_state import Usage
from tests.jepsen.faults import Window
from tests.jepsen.results import Report
from tests.jepsen.summary import NOT_RECOVERY

TEST = "t38_soak"
STOP_SECONDS_MAX = 10.0
# In the first part of a run, descriptors and memory may grow.
FIRST_SHARE = 0.25
# Memory is judged in runs that are long enough.
JUDGED_HOURS_MIN = 1.0
# What brokers have kept on their disks would make each process begin with more memory. Processes are compared
# at this age, all of it: they grow so fast at first that a minute more would be taken for a leak. What is not
# chance counts, and for most of the brokers, also of those with too few processes to tell: each has all of
# the state, but one process has more memory than the one before if it is the controller, or a coordinator.
YOUNG_HOURS = (0.02, 0.05)
BROKER_SLOPE_MB_MAX = 2.0
# A process grows at first, by smaller and smaller steps: it loads libraries when they are first needed, and
# keeps the memory that its largest tasks have needed. A leak goes on: the last part of a long life shows it.
LIFE_HOURS_MIN, WARM_UP_SHARE = 0.5, 0.5
PROCESS_SLOPE_MB_MAX = 3.0
# Student's t for 95 %, with 1, 2, 3, ... degrees of freedom: how many standard errors a slope may be off by
# chance. With three samples these are many.
STUDENT = (12.7, 4.3, 3.2, 2.8, 2.6, 2.4, 2.4, 2.3, 2.3, 2.2)
STUDENT_OF_MANY = 2.0


class Sample(NamedTuple):
    """The memory that a process has for itself. Pages of libraries are not a leak."""

    hours: float
    pid: int
    own_mb: float


class Slope(NamedTuple):
    """It is within `margin` of `per_hour`, unless by chance."""

    per_hour: float
    margin: float

    @property
    def least(self) -> float:
        return self.per_hour - self.margin


def slope_of(samples: Sequence[Sample]) -> Slope | None:
    """How memory grows, by least squares; None if there are too few samples."""
    hours = [sample.hours for sample in samples]
    if len(samples) < 3 or hours[0] == hours[-1]:
        return None
    sizes = [sample.own_mb for sample in samples]
    line = statistics.linear_regression(hours, sizes)
    rest = sum((size - line.intercept - line.slope * at) ** 2 for at, size in zip(hours, sizes, strict=True))
    middle = statistics.fmean(hours)
    spread = sum((at - middle) ** 2 for at in hours)
    degrees = len(samples) - 2
    error = math.sqrt(rest / degrees / spread)
    return Slope(line.slope, error * (STUDENT[degrees - 1] if degrees <= len(STUDENT) else STUDENT_OF_MANY))


def steady_slope(samples: Sequence[Sample]) -> float | None:
    """How memory grows per hour: the median of the slopes between any two samples. Unlike the line through
    all samples, it does not take a single step for growth."""
    slopes = [
        (later.own_mb - earlier.own_mb) / (later.hours - earlier.hours)
        for earlier, later in itertools.combinations(samples, 2)
        if later.hours > earlier.hours
    ]
    return statistics.median(slopes) if slopes else None


def lives_of(samples: Iterable[Sample]) -> list[list[Sample]]:
    """The samples of each process."""
    lives: dict[int, list[Sample]] = {}
    for sample in samples:
        lives.setdefault(sample.pid, []).append(sample)
    return list(lives.values())


def young(samples: Iterable[Sample]) -> list[Sample]:
    """One sample of each process that reached this age: the median of its first minutes."""
    first, last = YOUNG_HOURS
    found = (
        [each for each in life if life[0].hours + first <= each.hours <= life[0].hours + last]
        for life in lives_of(samples)
        if life[-1].hours >= life[0].hours + last
    )
    return [
        life[0]._replace(own_mb=statistics.median(each.own_mb for each in life)) for life in found if life
    ]


def long_lives(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    """The samples of each process that lived for long, without the first part of its life."""
    for life in lives_of(samples):
        begin, hours = life[0].hours, life[-1].hours - life[0].hours
        if hours >= LIFE_HOURS_MIN:
            yield [sample for sample in life if sample.hours >= begin + hours * WARM_UP_SHARE]


@dataclass
class Figures:
    hours: float = 0.0
    portions: int = 0
    windows: int = 0
    counts: Counts = field(default_factory=lambda: Counts(0, 0, 0, 0, 0))
    faults: Counter[str] = field(default_factory=Counter)
    recoveries: list[float] = field(default_factory=list)
    samples: dict[int, list[Sample]] = field(default_factory=dict)
    # When nobody uses the cluster: before and after each portion. Of the last cluster, if there were several.
    quiet: list[dict[int, Usage]] = field(default_factory=list)
    stop_seconds: dict[int, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add_window(self, window: Window) -> None:
        self.windows += 1
        self.faults.update([type(fault).__name__ for fault in window.faults] or ["none"])

    def add_usage(self, hours: float, usage: Mapping[int, Usage]) -> None:
        for broker_id, each in usage.items():
            sample = Sample(hours, each.pid, each.own_bytes / 1e6)
            self.samples.setdefault(broker_id, []).append(sample)

    def add_portion(self, report: Report) -> None:
        self.portions += 1
        if report.counts is not None:
            self.counts = _sum(self.counts, report.counts)
        self.recoveries += [
            seconds for name, seconds in report.recovery.items() if not name.startswith(NOT_RECOVERY)
        ]

    # ---- the judgement

    @property
    def process_slopes(self) -> list[float]:
        """One for each process that lived for long."""
        lives = [life for samples in self.samples.values() for life in long_lives(samples)]
        return [slope for slope in map(steady_slope, lives) if slope is not None]

    def judge(self) -> None:
        """Add what is wrong with the run as a whole."""
        if not self.portions:
            self.problems.append("nothing was checked")
        for broker_id, seconds in self.stop_seconds.items():
            if seconds >= STOP_SECONDS_MAX:
                self.problems.append(f"the clean stop of broker {broker_id} took {seconds:.1f} s")
        if self.quiet:
            first = self.quiet[: math.ceil(len(self.quiet) * FIRST_SHARE)]
            self.problems += end_state.check_usage(_most(first), self.quiet[-1])
        if self.hours >= JUDGED_HOURS_MIN:
            self.problems += self._check_memory()

    def _check_memory(self) -> Iterator[str]:
        starts = [slope for slope in map(slope_of, map(young, self.samples.values())) if slope is not None]
        grown = [slope.per_hour for slope in starts if slope.least > BROKER_SLOPE_MB_MAX]
        if len(grown) > len(self.samples) / 2:
            yield f"processes begin with more and more memory: {_shown(grown)}"
        slopes = self.process_slopes
        if slopes and statistics.median(slopes) > PROCESS_SLOPE_MB_MAX:
            yield f"the memory of a process grows by {_shown(slopes)}"

    def report(self, seed: int) -> Report:
        """For the results of all tests."""
        report = Report(TEST, seed, [f"{number} x {kind}" for kind, number in self.faults.most_common()])
        report.counts, report.problems = self.counts, self.problems
        report.seconds = self.hours * 3600
        report.figures = {"hours": self.hours, "portions": self.portions, "windows": self.windows}
        if self.recoveries:
            report.recovery["writable after a window, longest"] = max(self.recoveries)
        for broker_id, seconds in self.stop_seconds.items():
            report.figures[f"seconds of the clean stop of broker {broker_id}"] = seconds
        for broker_id, samples in self.samples.items():
            if (slope := slope_of(young(samples))) is not None:
                report.figures[f"MB per hour of new processes of broker {broker_id}"] = slope.per_hour
        return report

    # ---- for people

    def print(self, console: Console) -> None:
        console.print(self._table())
        counts = self.counts
        console.print(
            f"{self.hours:.2f} hours, {self.portions} portions, {self.windows} windows, "
            f"{counts.operations:,} operations\n"
            f"values: {counts.committed:,} committed, {counts.aborted:,} aborted, "
            f"{counts.unknown:,} unknown, {counts.read:,} read\n"
            f"faults: {', '.join(f'{number} x {kind}' for kind, number in self.faults.most_common())}"
        )
        if self.recoveries:
            console.print(
                f"writable after a window: median {statistics.median(self.recoveries):.1f} s, "
                f"longest {max(self.recoveries):.1f} s"
            )
        if slopes := self.process_slopes:
            console.print(f"memory of a process that lives for long: {_shown(slopes)}")
        else:
            console.print(f"no process lived for {LIFE_HOURS_MIN:g} hours: leaks of memory were not judged")
        for problem in self.problems:
            console.print(f"problem: {problem}", markup=False)
        console.print("NOT GOOD" if self.problems else "good")

    def _table(self) -> Table:
        names = ("broker", "MB first", "last", "new, per hour", "descriptors first", "last", "clean stop")
        table = Table(*names)
        for broker_id, samples in self.samples.items():
            slope = slope_of(young(samples))
            quiet = [each[broker_id] for each in (*self.quiet[:1], *self.quiet[-1:]) if broker_id in each]
            descriptors = [str(each.sockets + each.files) for each in quiet] or ["-", "-"]
            stop = self.stop_seconds.get(broker_id)
            table.add_row(
                str(broker_id),
                f"{samples[0].own_mb:.0f}",
                f"{samples[-1].own_mb:.0f}",
                "-" if slope is None else f"{slope.per_hour:+.1f} ± {slope.margin:.1f}",
                *descriptors,
                "-" if stop is None else f"{stop:.1f} s",
            )
        return table


def _most(usages: Sequence[Mapping[int, Usage]]) -> dict[int, Usage]:
    """The most that each broker has used."""
    names = [each.name for each in fields(Usage)]
    return {
        broker_id: Usage(*(max(getattr(each[broker_id], name) for each in usages) for name in names))
        for broker_id in usages[0]
        if all(broker_id in each for each in usages)
    }


def _sum(one: Counts, other: Counts) -> Counts:
    return Counts(*(getattr(one, each.name) + getattr(other, each.name) for each in fields(Counts)))


def _shown(slopes: Sequence[float]) -> str:
    return f"{statistics.median(slopes):+.1f} MB per hour (the median of {len(slopes)})"
