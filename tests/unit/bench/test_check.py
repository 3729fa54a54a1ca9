"""A row has moved when it moved by more than the spread of its rounds."""

from tests.bench.check import moves
from tests.unit.bench.benching import COST, rates, row, run


def test_a_move_within_the_spread_is_not_reported() -> None:
    before, after = run(row(rates(90, 100, 115))), run(row(rates(110, 120, 122)))
    assert list(moves(before, after)) == []


def test_a_move_beyond_the_spread_is_reported_with_its_direction() -> None:
    before, after = run(row(rates(98, 100, 102))), run(row(rates(118, 120, 122)))
    (move,) = moves(before, after)
    assert (move.row, move.is_better, round(move.change, 3)) == ("p16k", True, 0.2)


def test_a_cost_that_rises_is_worse() -> None:
    before, after = run(row([{COST: 50.0}])), run(row([{COST: 60.0}]))
    (move,) = moves(before, after)
    assert not move.is_better


def test_single_rounds_are_given_some_spread() -> None:
    assert list(moves(run(row(rates(100))), run(row(rates(104))))) == []
    assert len(list(moves(run(row(rates(100))), run(row(rates(106)))))) == 1


def test_with_the_peer_in_both_runs_ratios_are_compared() -> None:
    """The machine got slower by half, and both brokers with it: nothing of ours moved."""
    before = run(row(rates(400, 400), rates(100, 100)))
    slower = run(row(rates(200, 200), rates(50, 50)))
    assert list(moves(before, slower)) == []
    lost = run(row(rates(200, 200), rates(100, 100)))
    (move,) = moves(before, lost)
    assert move.is_ratio
    assert not move.is_better
    assert move.show(move.after) == "2.00x of kafka"


def test_rows_that_only_one_run_has_are_skipped() -> None:
    assert list(moves(run(row(rates(1), name="p1m")), run(row(rates(9))))) == []
