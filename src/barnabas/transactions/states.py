"""The states of a transaction and the moves between them.

EMPTY -> ONGOING                   the first partition is added
ONGOING -> ONGOING                 a further partition
ONGOING -> PREPARE_COMMIT          EndTxn commits: after this nothing can abort it
ONGOING -> PREPARE_ABORT           EndTxn aborts
ONGOING -> PREPARE_EPOCH_FENCE     a new producer takes over the id, or the transaction times out
PREPARE_EPOCH_FENCE -> PREPARE_ABORT   in the same decision, so this state is in no log
PREPARE_* -> COMPLETE_*            every partition has its marker
EMPTY, COMPLETE_* -> PREPARE_ABORT a version 2 client aborts; it does not know whether it had begun
COMPLETE_* -> ONGOING              the next transaction
EMPTY, COMPLETE_* -> EMPTY         InitProducerId
EMPTY, COMPLETE_* -> DEAD          unused for a long time: a tombstone, so this state is in no log either"""

from enum import IntEnum


class State(IntEnum):
    """The values are those in the log; `shown` is the name in tools and filters."""

    shown: str

    def __new__(cls, number: int, shown: str) -> "State":
        member = int.__new__(cls, number)
        member._value_ = number
        member.shown = shown
        return member

    EMPTY = 0, "Empty"
    ONGOING = 1, "Ongoing"
    PREPARE_COMMIT = 2, "PrepareCommit"
    PREPARE_ABORT = 3, "PrepareAbort"
    COMPLETE_COMMIT = 4, "CompleteCommit"
    COMPLETE_ABORT = 5, "CompleteAbort"
    DEAD = 6, "Dead"
    PREPARE_EPOCH_FENCE = 7, "PrepareEpochFence"


PREPARED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
# No transaction is open: one may begin, a producer may start again, the id may expire.
AT_REST = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})

_FROM_REST = frozenset({State.EMPTY, State.ONGOING, State.PREPARE_ABORT, State.DEAD})
MOVES: dict[State, frozenset[State]] = {
    State.EMPTY: _FROM_REST,
    State.ONGOING: frozenset(
        {State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT, State.PREPARE_EPOCH_FENCE}
    ),
    State.PREPARE_COMMIT: frozenset({State.COMPLETE_COMMIT}),
    State.PREPARE_ABORT: frozenset({State.COMPLETE_ABORT}),
    State.COMPLETE_COMMIT: _FROM_REST,
    State.COMPLETE_ABORT: _FROM_REST,
    State.DEAD: frozenset(),
    State.PREPARE_EPOCH_FENCE: frozenset({State.PREPARE_ABORT}),
}

BY_NAME = {state.shown: state for state in State}
BY_NUMBER = {int(state): state for state in State}
