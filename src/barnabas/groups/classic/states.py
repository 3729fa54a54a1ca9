"""The states of a classic group and the moves between them: the whole table, and nothing else.

EMPTY       nobody is in; committed offsets may remain, and expire from here on
PREPARING   a round has begun: everybody has to join again, joins are parked
COMPLETING  all have joined and the leader assigns partitions, syncs are parked
STABLE      the assignment is on disk and everybody may have it
DEAD        the group is gone, or this broker no longer coordinates it

EMPTY -> PREPARING               a member joins
PREPARING -> COMPLETING          all have joined, or the time to join is over
PREPARING -> EMPTY               nobody is left
COMPLETING -> STABLE             the leader's SyncGroup is recorded
COMPLETING, STABLE -> PREPARING  a member joins, changes, leaves, or is not heard of in time
any -> DEAD                      the group is deleted or converted, or its partition has another leader"""

from collections.abc import Mapping
from enum import Enum


class State(Enum):
    """The values are what ListGroups and DescribeGroups print."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


MOVES: Mapping[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.PREPARING, State.DEAD}),
    State.PREPARING: frozenset({State.COMPLETING, State.EMPTY, State.DEAD}),
    State.COMPLETING: frozenset({State.STABLE, State.PREPARING, State.DEAD}),
    State.STABLE: frozenset({State.PREPARING, State.DEAD}),
    State.DEAD: frozenset({State.DEAD}),
}


class IllegalMove(Exception):
    """A bug of ours: no request may lead to it."""


def moved(old: State, new: State) -> State:
    if new not in MOVES[old]:
        raise IllegalMove(f"a group cannot move from {old.value} to {new.value}")
    return new


def route(old: State, new: State) -> list[State]:
    """The moves that lead from one state to another, the fewest there are; none if it is the same.

    Records tell only how a round ended: what a replay does not see between two of them is this."""
    routes: list[list[State]] = [[]]
    for steps in routes:
        here = steps[-1] if steps else old
        if here is new:
            return steps
        routes.extend([*steps, there] for there in MOVES[here] if there is not old and there not in steps)
    raise IllegalMove(f"no moves lead a group from {old.value} to {new.value}")
