"""The move table of classic groups, and every row of it as a group makes the move."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from tests.support.group_story import GroupStory

from barnabas.errors import ErrorCode
from barnabas.groups.classic.states import MOVES, IllegalMove, State, moved, route

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = State


def test_only_the_moves_of_the_table_are_made() -> None:
    for old in State:
        for new in State:
            if new in MOVES[old]:
                assert moved(old, new) is new
            else:
                with pytest.raises(IllegalMove):
                    moved(old, new)


@pytest.mark.parametrize(
    ("old", "new", "steps"),
    [
        (STABLE, STABLE, []),
        (EMPTY, EMPTY, []),
        (COMPLETING, STABLE, [STABLE]),
        (STABLE, EMPTY, [PREPARING, EMPTY]),
        (EMPTY, STABLE, [PREPARING, COMPLETING, STABLE]),
        (COMPLETING, EMPTY, [PREPARING, EMPTY]),
        (PREPARING, DEAD, [DEAD]),
    ],
)
def test_a_route_is_made_of_moves(old: State, new: State, steps: list[State]) -> None:
    assert route(old, new) == steps


def test_no_move_leads_back_from_dead() -> None:
    with pytest.raises(IllegalMove, match="Dead"):
        route(DEAD, STABLE)


def _empty() -> GroupStory:
    story = GroupStory().stable("a")
    story.leave("a")
    return story


def _preparing() -> GroupStory:
    story = GroupStory()
    story.enter("a")
    return story


def _completing() -> GroupStory:
    story = _preparing()
    story.pass_time(3000)
    return story


def _stable() -> GroupStory:
    return GroupStory().stable("a")


IN_STATE = {EMPTY: _empty, PREPARING: _preparing, COMPLETING: _completing, STABLE: _stable}
Act = Callable[[GroupStory], object]


def _delete(story: GroupStory) -> None:
    story.group.apply(None)


ROWS: list[tuple[State, State, str, Act]] = [
    (EMPTY, PREPARING, "a member joins", lambda s: s.enter("b")),
    (PREPARING, COMPLETING, "the first wait is over", lambda s: s.pass_time(3000)),
    (PREPARING, EMPTY, "the last member leaves", lambda s: s.leave("a")),
    (COMPLETING, STABLE, "the leader syncs", lambda s: s.sync("a", {"a": b"x"})),
    (COMPLETING, PREPARING, "a member joins", lambda s: s.enter("b")),
    (COMPLETING, EMPTY, "the last member leaves", lambda s: s.leave("a")),
    (COMPLETING, EMPTY, "nobody syncs in time", lambda s: s.pass_time(60_000, heartbeats=["a"])),
    (COMPLETING, EMPTY, "no member sends a heartbeat in time", lambda s: s.pass_time(10_000)),
    (STABLE, PREPARING, "a member joins", lambda s: s.enter("b")),
    (STABLE, COMPLETING, "the only member joins again", lambda s: s.join("a")),
    (STABLE, EMPTY, "the last member leaves", lambda s: s.leave("a")),
    (STABLE, EMPTY, "no member sends a heartbeat in time", lambda s: s.pass_time(10_000)),
    (STABLE, STABLE, "a heartbeat", lambda s: s.heartbeat("a")),
    *((state, DEAD, "the group is deleted", _delete) for state in (EMPTY, PREPARING, COMPLETING, STABLE)),
]


@pytest.mark.parametrize(
    ("old", "new", "act"),
    [(row[0], row[1], row[3]) for row in ROWS],
    ids=[f"{r[0].name}-{r[2]}" for r in ROWS],
)
def test_every_row(old: State, new: State, act: Act) -> None:
    story = IN_STATE[old]()
    assert story.group.state is old
    act(story)
    assert story.group.state is new


def test_every_move_of_the_table_has_a_row() -> None:
    """A row may make several moves at once; all that it makes count."""
    made = {(old, new) for old, end, _, _ in ROWS for old, new in _pairs(old, end)}
    listed = {(old, new) for old in State for new in MOVES[old]}
    assert listed - made == {(DEAD, DEAD)}


def _pairs(old: State, end: State) -> list[tuple[State, State]]:
    stops = [old, *route(old, end)]
    return list(pairwise(stops))


def test_a_dead_group_answers_that_the_coordinator_is_not_available() -> None:
    story = _stable()
    story.group.apply(None)
    assert story.heartbeat("a") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    answer = story.join("a")
    assert answer is not None and answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    answer = story.sync("a")
    assert answer is not None and answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert story.commit("a") is ErrorCode.COORDINATOR_NOT_AVAILABLE
