"""A transaction makes every move of the table, and no other."""

from collections.abc import Callable

import pytest

from barnabas.ids import TopicPartition
from barnabas.transactions.metadata import InvalidMoveError, Transaction
from barnabas.transactions.states import AT_REST, MOVES, PREPARED, State

TO: dict[State, Callable[[Transaction], Transaction]] = {
    State.EMPTY: lambda t: t.initialized(2, 1000, 20),
    State.ONGOING: lambda t: t.with_partitions(frozenset({TopicPartition("a", 0)}), 2, 20),
    State.PREPARE_COMMIT: lambda t: t.prepared(State.PREPARE_COMMIT, 2, -1, 20),
    State.PREPARE_ABORT: lambda t: t.prepared(State.PREPARE_ABORT, 2, -1, 20),
    State.PREPARE_EPOCH_FENCE: lambda t: t.fenced(1),
}
FROM = {state: Transaction(7, 1000, 10, 1, state) for state in State}


@pytest.mark.parametrize("source", State, ids=lambda state: state.name)
@pytest.mark.parametrize("target", TO, ids=lambda state: state.name)
def test_a_move_is_in_the_table_or_refused(source: State, target: State) -> None:
    if target in MOVES[source]:
        assert TO[target](FROM[source]).state is target
    else:
        with pytest.raises(InvalidMoveError):
            TO[target](FROM[source])


def test_a_prepared_transaction_can_only_complete() -> None:
    assert FROM[State.PREPARE_COMMIT].completed(20).state is State.COMPLETE_COMMIT
    assert FROM[State.PREPARE_ABORT].completed(20).state is State.COMPLETE_ABORT
    assert all(len(MOVES[state]) == 1 for state in PREPARED)


@pytest.mark.parametrize("source", set(State) - PREPARED, ids=lambda state: state.name)
def test_only_a_prepared_transaction_can_complete(source: State) -> None:
    with pytest.raises(InvalidMoveError):
        FROM[source].completed(20)


def test_an_id_is_removed_only_without_an_open_transaction() -> None:
    assert {state for state in State if State.DEAD in MOVES[state]} == AT_REST


def test_states_have_the_names_that_tools_show() -> None:
    assert [state.shown for state in State] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
