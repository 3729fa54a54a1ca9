"""Goals of rows: what one contestant should reach, alone or compared with another, and whether it does."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.bench.figures import LOWER, METRICS, Summary

OURS, KAFKA = "barnabas", "kafka"
Summaries = Mapping[str, Mapping[str, Summary]]  # contestant, metric


@dataclass(frozen=True, slots=True)
class Goal:
    """The metric of `contestant` must be at least (or, where less is better, at most) `factor` times that of
    `against`. Without `against` the goal is a fixed value: `factor` itself."""

    metric: str
    factor: float
    against: str | None = KAFKA
    contestant: str = OURS

    @property
    def less_is_better(self) -> bool:
        return METRICS[self.metric].better == LOWER

    def __str__(self) -> str:
        sign = "<=" if self.less_is_better else ">="
        if self.against is None:
            return f"{sign} {self.factor:g} {METRICS[self.metric].unit}"
        return f"{sign} {self.factor:g}x {METRICS[self.metric].unit} of {self.against}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """`reached` is None when what the goal compares with was not measured."""

    goal: Goal
    reached: float | None

    @property
    def met(self) -> bool | None:
        if self.reached is None:
            return None
        return (
            self.reached <= self.goal.factor if self.goal.less_is_better else self.reached >= self.goal.factor
        )

    def __str__(self) -> str:
        if self.reached is None:
            return f"{self.goal}: not compared"
        # A ratio that just misses its goal must not be rounded up to it.
        shown = f"{self.reached:.3g}" + ("" if self.goal.against is None else "x")
        return f"{self.goal}: {shown}, {'met' if self.met else 'missed'}"


def ratio(summaries: Summaries, metric: str, contestant: str, against: str) -> float | None:
    """The figure of `contestant` divided by that of `against`."""
    mine, other = summaries.get(contestant, {}).get(metric), summaries.get(against, {}).get(metric)
    if mine is None or other is None or not other.middle:
        return None
    return mine.middle / other.middle


def judge(goal: Goal, summaries: Summaries) -> Judgement:
    if goal.against is not None:
        return Judgement(goal, ratio(summaries, goal.metric, goal.contestant, goal.against))
    mine = summaries.get(goal.contestant, {}).get(goal.metric)
    return Judgement(goal, None if mine is None else mine.middle / METRICS[goal.metric].scale)
