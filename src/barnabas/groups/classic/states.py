"""The states of a classic group and all moves between them.

EMPTY       no members; committed offsets may remain, and their time to expire counts from here
PREPARING   a rebalance has begun: all members must join again, JoinGroup calls are parked
COMPLETING  all have joined and the leader assigns partitions, SyncGroup calls are parked
STABLE      the assignment is recorded and all members can fetch it
DEAD        the group was deleted, or this broker no longer coordinates it

EMPTY -> PREPARING               a member joins
PREPARING -> COMPLETING          all have joined, or the time to join is over
PREPARING -> EMPTY               no member is left
COMPLETING -> STABLE             the leader's SyncGroup is recorded
COMPLETING, STABLE -> PREPARING  a member joins, changes, leaves, or its session expires
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
    """A defect in Barnabas: no request can cause it."""


def moved(old: State, new: State) -> State:
    if new not in MOVES[old]:
        raise IllegalMove(f"a group cannot move from {old.value} to {new.value}")
    return new


def route(old: State, new: State) -> list[State]:
    """The shortest list of moves from one state to another; empty if they are the same.

    A record says only how a rebalance ended, so a replay does not see the moves before it."""
    routes: list[list[State]] = [[]]
    for steps in routes:
        here = steps[-1] if steps else old
        if here is new:
            return steps
        routes.extend([*steps, there] for there in MOVES[here] if there is not old and there not in steps)
    raise IllegalMove(f"a group cannot get from {old.value} to {new.value}")
