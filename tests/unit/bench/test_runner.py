"""Contestants take turns, are warmed until two rounds agree, and fail alone."""

import contextlib
from collections.abc import Iterator

from tests.bench.figures import Sample
from tests.bench.rows import Round, Rounds, Row
from tests.bench.runner import run_rounds
from tests.bench.stage import Stage

RATE = "megabytes_per_second"


@contextlib.contextmanager
def nothing(stage: Stage) -> Iterator[Rounds]:
    yield {}


def row(*, warms: bool = True, rounds: int | None = None) -> Row:
    return Row("row", "broker", "work", RATE, nothing, warms=warms, rounds=rounds)


class Script:
    """Contestants whose rounds give the figures of the test; keeps the order in which they were run."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def contestant(self, name: str, *values: float) -> Round:
        rest = iter(values)

        def measure() -> Sample:
            self.order.append(name)
            return Sample({RATE: next(rest)})

        return measure


def test_contestants_take_turns() -> None:
    script = Script()
    rounds = {"a": script.contestant("a", 1, 2), "b": script.contestant("b", 3, 4)}
    first, second = run_rounds(row(warms=False), rounds, 2, lambda text: None)
    assert script.order == ["a", "b", "a", "b"]
    assert [each[RATE] for each in first.rounds] == [1, 2]
    assert [each[RATE] for each in second.rounds] == [3, 4]


def test_warming_ends_when_two_rounds_agree_or_three_are_done() -> None:
    script = Script()
    rounds = {"a": script.contestant("a", 100, 99, 98), "b": script.contestant("b", 10, 50, 100, 200)}
    steady, rising = run_rounds(row(), rounds, 1, lambda text: None)
    assert (steady.warm_rounds, rising.warm_rounds) == (2, 3)
    assert [each[RATE] for each in steady.rounds] == [98]
    assert [each[RATE] for each in rising.rounds] == [200]


def test_a_row_may_say_how_many_rounds_count() -> None:
    script = Script()
    (result,) = run_rounds(row(warms=False, rounds=1), {"a": script.contestant("a", 7)}, 5, lambda text: None)
    assert len(result.rounds) == 1


def test_a_contestant_that_fails_says_why_and_does_not_cost_the_others() -> None:
    def failing() -> Sample:
        raise RuntimeError("produce was answered with error 2")

    script = Script()
    rounds = {"a": failing, "b": script.contestant("b", 5, 5, 6)}
    failed, other = run_rounds(row(), rounds, 1, lambda text: None)
    assert failed.failure == "RuntimeError: produce was answered with error 2"
    assert not failed.rounds
    assert [each[RATE] for each in other.rounds] == [6]
