"""When a goal is met, missed, or cannot be judged."""

import pytest
from tests.bench.figures import Summary
from tests.bench.goals import KAFKA, OURS, Goal, judge


def summaries(
    ours: float, kafka: float | None, metric: str = "megabytes_per_second"
) -> dict[str, dict[str, Summary]]:
    values = {OURS: ours, **({} if kafka is None else {KAFKA: kafka})}
    return {name: {metric: Summary.of([value])} for name, value in values.items()}


def test_more_is_better_for_rates() -> None:
    goal = Goal("megabytes_per_second", 4.0)
    assert judge(goal, summaries(400, 100)).met is True
    assert judge(goal, summaries(399, 100)).met is False
    assert str(judge(goal, summaries(399, 100))) == ">= 4x MB/s of kafka: 3.99x, missed"


def test_less_is_better_for_times() -> None:
    goal = Goal("p50_us", 0.5)
    assert judge(goal, summaries(50, 100, "p50_us")).met is True
    assert judge(goal, summaries(51, 100, "p50_us")).met is False


def test_without_the_peer_nothing_is_judged() -> None:
    judgement = judge(Goal("megabytes_per_second", 4.0), summaries(400, None))
    assert judgement.met is None
    assert str(judgement).endswith("not compared")


def test_a_peer_without_figures_cannot_be_compared_with() -> None:
    assert judge(Goal("cpu_us_per_request", 1.0), summaries(5, 0, "cpu_us_per_request")).met is None


@pytest.mark.parametrize(("value", "met"), [(1.5, True), (1.6, False)])
def test_a_goal_without_a_peer_judges_the_figure_itself(value: float, met: bool) -> None:
    assert judge(Goal("growth", 1.5, against=None), summaries(value, None, "growth")).met is met
