"""The parts of a long run that need no cluster: which windows come, and how memory is judged."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.jepsen import soak
from tests.jepsen.end_state import Usage
from tests.jepsen.faults import Killed, Restarted, Stopped, Window
from tests.jepsen.results import Report
from tests.jepsen.soak import PORTION_SECONDS, Portion, Windows
from tests.jepsen.soak_figures import (
    Figures,
    Sample,
    long_lives,
    slope_of,
    steady_slope,
    young,
)


class NoCluster:
    """What a portion that is not entered needs."""

    session_seconds = 3.0
    brokers: dict[int, Any] = {1: None, 2: None, 3: None}


def portions(seed: int, count: int) -> Iterator[list[Window]]:
    windows = Windows(seed)
    for _ in range(count):
        portion = Portion(NoCluster(), seed, windows.number)  # type: ignore[arg-type]
        yield windows.take(portion)


def kinds(windows: list[Window]) -> list[tuple[list[type], float]]:
    return [([type(fault) for fault in window.faults], window.seconds) for window in windows]


# ---- windows


def test_the_seed_decides_which_windows_come() -> None:
    first, again, other = (list(map(kinds, portions(seed, 3))) for seed in (5, 5, 6))
    assert first == again != other


def test_windows_do_not_depend_on_the_length_of_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    long = [each for windows in portions(5, 2) for each in kinds(windows)]
    monkeypatch.setattr(soak, "PORTION_SECONDS", PORTION_SECONDS / 3)
    short = [each for windows in portions(5, 6) for each in kinds(windows)]
    shared = min(len(long), len(short))
    assert long[:shared] == short[:shared]


def test_no_broker_is_ended_after_the_first_quarter_of_an_hour() -> None:
    ending = (Killed, Stopped, Restarted)
    windows = Windows(5)
    counts = {True: 0, False: 0}
    while windows.seconds < 3600:
        ends_processes = windows.ends_processes
        taken = windows.take(Portion(NoCluster(), 5, windows.number))  # type: ignore[arg-type]
        counts[ends_processes] += sum(isinstance(each, ending) for window in taken for each in window.faults)
    assert counts[True] > 0
    assert counts[False] == 0


def test_a_portion_says_how_to_run_it_again() -> None:
    portion = Portion(NoCluster(), 5, 41)  # type: ignore[arg-type]
    assert portion.how_to_run_again() == "make soak SEED=5 FROM=41"


# ---- memory


def samples(per_hour: float, hours: float = 2.0, pid: int = 1) -> list[Sample]:
    # To and fro by one MB, and in the long run by so many.
    places = range(int(hours * 100) + 1)
    return [Sample(place / 100, pid, 50 + per_hour * place / 100 + place % 2) for place in places]


def test_the_slope_is_that_of_the_line_through_all_samples() -> None:
    slope = slope_of(samples(3.0))
    assert slope is not None
    assert slope.per_hour == pytest.approx(3.0, abs=0.1)
    assert 0 < slope.margin < 1.0
    assert slope_of(samples(3.0)[:2]) is None


def test_only_processes_that_live_for_long_are_compared() -> None:
    short, long = samples(0, hours=0.1, pid=1), samples(5.0, hours=1.0, pid=2)
    (life,) = long_lives([*short, *long])
    assert {sample.pid for sample in life} == {2}
    assert life[0].hours > long[0].hours


def test_the_steady_slope_is_not_that_of_a_step() -> None:
    step = [Sample(place / 100, 1, 50.0 if place < 40 else 53.0) for place in range(100)]
    assert steady_slope(step) == 0
    assert steady_slope(samples(3.0)) == pytest.approx(3.0, abs=0.1)
    assert steady_slope(samples(3.0)[:1]) is None


# At which age, in hours, a process of a real run had grown by how many MB.
STEPS = {0.01: 2.3, 0.03: 4.0, 0.06: 6.0, 0.1: 7.0, 0.15: 8.0, 0.2: 9.0, 0.3: 10.0, 0.45: 11.0}


def life(
    begin: float, hours: float, pid: int, leak_per_hour: float = 0.0, first: float = 48.0
) -> list[Sample]:
    ages = [place / 200 for place in range(int(hours * 200) + 1)]
    return [
        Sample(begin + age, pid, first + grown(age) + leak_per_hour * age + place % 3 / 10)
        for place, age in enumerate(ages)
    ]


def grown(age: float) -> float:
    return max((size for at, size in STEPS.items() if at <= age), default=0.0)


def judged(hours: float = 1.1, leak_per_hour: float = 0.0, more_per_hour: float = 0.0) -> list[str]:
    """A run in which each broker is ended several times, and then lives on for long. What is on its disk
    costs `more_per_hour`."""
    begins = [0.0, 0.1, 0.2, 0.3, 0.4]
    lengths = [0.09, 0.09, 0.09, 0.09, hours - begins[-1]]
    figures = Figures(hours=hours, portions=1, stop_seconds={1: 0.5})
    for broker_id in (1, 2, 3):
        figures.samples[broker_id] = [
            sample
            for place, (begin, length) in enumerate(zip(begins, lengths, strict=True))
            for sample in life(
                begin, length, 10 * broker_id + place, leak_per_hour, 48.0 + more_per_hour * begin
            )
        ]
    figures.judge()
    return figures.problems


def test_the_first_half_of_each_life_is_left_out() -> None:
    (warm,) = long_lives(life(0.5, 0.7, pid=1))
    assert warm[0].hours == pytest.approx(0.5 + 0.35)


def test_processes_are_compared_at_the_same_age() -> None:
    """Also one that has become older, and larger, than the others. One that ended before that age, when it
    had grown less, is not compared."""
    found = young([*life(0.0, 0.06, pid=1), *life(0.2, 0.7, pid=2), *life(0.9, 0.045, pid=3)])
    assert [sample.pid for sample in found] == [1, 2]
    assert found[0].own_mb == pytest.approx(found[1].own_mb)


def test_steps_that_become_smaller_are_no_leak() -> None:
    assert judged() == []


def test_a_leak_is_a_problem_of_a_long_run() -> None:
    (problem,) = judged(leak_per_hour=4.0)
    assert "the memory of a process grows by" in problem
    assert judged(hours=0.9, leak_per_hour=4.0) == []


def test_processes_that_begin_with_more_and_more_memory_are_a_problem() -> None:
    (problem,) = judged(more_per_hour=4.0)
    assert "processes begin with more and more memory: +4.0 MB per hour" in problem


def test_processes_of_one_broker_that_begin_with_more_memory_are_chance() -> None:
    """It was the controller later on."""
    figures = Figures(hours=1.0, portions=1)
    for broker_id, more_per_hour in ((1, 0.0), (2, 12.0), (3, 0.0)):
        figures.samples[broker_id] = [
            sample
            for pid in range(6)
            for sample in life(pid * 0.05, 0.05, 10 * broker_id + pid, first=48 + more_per_hour * pid * 0.05)
        ]
    figures.judge()
    assert figures.problems == []


def test_one_broker_with_a_few_processes_says_nothing_about_all() -> None:
    """The others were ended less often, so that nothing is known of them."""
    figures = Figures(hours=1.0, portions=1)
    for broker_id, processes in ((1, 6), (2, 2), (3, 1)):
        figures.samples[broker_id] = [
            sample
            for pid in range(processes)
            for sample in life(pid * 0.05, 0.05, 10 * broker_id + pid, first=48 + 12.0 * pid * 0.05)
        ]
    figures.judge()
    assert figures.problems == []


def test_the_margin_of_a_slope_is_wide_if_there_are_few_samples() -> None:
    """As in a real run, in which three processes of a broker began within a quarter of an hour."""
    slope = slope_of([Sample(0.0, 1, 32.0), Sample(0.1, 2, 33.2), Sample(0.2, 3, 33.8)])
    assert slope is not None
    assert slope.per_hour == pytest.approx(9.0)
    assert slope.least < 0


def test_a_slow_stop_leaked_descriptors_and_an_empty_run_are_problems() -> None:
    few, many = ({1: Usage(7, 20, files, 50_000_000)} for files in (100, 500))
    figures = Figures(portions=3, stop_seconds={1: 12.0}, quiet=[few, few, many])
    figures.judge()
    assert ["clean stop" in problem or "files" in problem for problem in figures.problems] == [True, True]
    empty = Figures()
    empty.judge()
    assert empty.problems == ["nothing was checked"]


def test_portions_add_up() -> None:
    figures = Figures()
    for seconds in (2.0, 4.0):
        figures.add_portion(Report("soak_portion", 1, recovery={"writable": seconds, "in sync": 60.0}))
    assert figures.recoveries == [2.0, 4.0]
    assert figures.report(7).row()["recovery_seconds"] == {"writable after a window, longest": 4.0}
