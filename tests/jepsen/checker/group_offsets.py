"""Committed offsets of groups: they go back only by a reset, and an aborted transaction commits none.

When an operation begins, the group's offset is that of one of the commits and reads that have ended by then:
the last one, or one at the same time as the last one, because operations at the same time may be in any
order. The lowest of them is a promise: the operation that begins must not find, or commit, a lower offset.
Commits at the same time, and those whose outcome is unknown, may be the reason for a lower one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.jepsen.checker.actions import Action, Outcome
from tests.jepsen.checker.evidence import Evidence
from tests.jepsen.checker.verdict import Finding, Kind

NOTHING_COMMITTED = -1


@dataclass(frozen=True, slots=True)
class Told:
    """An offset that an operation committed or found."""

    offset: int
    action: Action
    is_commit: bool


@dataclass(slots=True)
class GroupKey:
    """What is known of the offset that one group has committed for one log."""

    last: list[Told] = field(default_factory=list)  # each of them may have been the last one
    # Offsets of the commits that may have happened, with the index up to which each may have landed.
    may_land_until: dict[int, float] = field(default_factory=dict)
    aborted: dict[int, Action] = field(default_factory=dict)  # offsets of commits that did not happen
    reset_until: int = -1  # the index at which the last reset had ended
    lowest_unknown_reset: float = math.inf  # it may land at any time, and the group goes on from there

    def promise(self) -> Told | None:
        return min(self.last, key=lambda told: told.offset, default=None)

    def is_unknown(self, offset: int) -> bool:
        """A commit of this offset may land at any later time."""
        return self.may_land_until.get(offset) == math.inf

    def may_go_back_to(self, told: Told) -> bool:
        """A read may find a commit that landed late. A commit may be lower only after a reset: a group fences
        a member before another one goes on."""
        lands_until = self.may_land_until.get(told.offset, -1)
        is_at_the_same_time = not told.is_commit and lands_until > told.action.begin.index
        return is_at_the_same_time or told.offset >= self.lowest_unknown_reset

    def update(self, new: Told) -> None:
        """After an operation that did not go back."""
        if not new.is_commit and self.is_unknown(new.offset):
            return  # an unknown commit landed late, and those who do not know of it may commit less
        self.last = [told for told in self.last if self._may_be_last(told, new)]
        promise = self.promise()
        # A read that found less than all that may be the last one was before it.
        if new.is_commit or promise is None or new.offset >= promise.offset:
            self.last.append(new)

    @staticmethod
    def _may_be_last(told: Told, new: Told) -> bool:
        """At the same time as the new one, or found by it."""
        is_found = not new.is_commit and told.offset == new.offset
        return is_found or told.action.last.index > new.action.begin.index


Groups = dict[tuple[str, str], GroupKey]
Promises = dict[tuple[str, str], Told]


def check_group_offsets(evidence: Evidence) -> Iterator[Finding]:
    groups: Groups = defaultdict(GroupKey)
    promises: dict[Action, Promises] = {}  # those that held when the action began
    for _, action, is_begin in _events(evidence):
        if is_begin:
            promises[action] = _begin(groups, action)
        else:
            yield from _end(groups, action, promises.pop(action))


def _events(evidence: Evidence) -> list[tuple[int, Action, bool]]:
    events = []
    for action in evidence.actions:
        if any(_offsets(action)):
            events.append((action.begin.index, action, True))
            if action.outcome is Outcome.COMMITTED:
                events.append((action.last.index, action, False))
    return sorted(events, key=lambda event: event[0])


def _offsets(action: Action) -> Iterator[tuple[str, tuple[str, str], int]]:
    """Micro-operation, group and key, and offset of everything that an action commits or finds."""
    if action.function in ("txn", "commit", "reset", "committed"):
        for name, *arguments in action.value:
            if name in ("commit", "reset", "committed") and len(arguments) == 2:
                group, offsets = arguments
                for key, offset in offsets.items():
                    yield name, (group, key), NOTHING_COMMITTED if offset is None else offset


def _begin(groups: Groups, action: Action) -> Promises:
    promises = {}
    for name, group_key, offset in _offsets(action):
        known = groups[group_key]
        if name == "reset":
            known.reset_until = max(known.reset_until, action.last.index)
            if action.outcome is Outcome.UNKNOWN:
                known.lowest_unknown_reset = min(known.lowest_unknown_reset, offset)
        if name != "committed":
            _begin_commit(known, action, offset)
        promise = known.promise()
        if promise:
            promises[group_key] = promise
    return promises


def _begin_commit(known: GroupKey, action: Action, offset: int) -> None:
    if action.outcome is Outcome.ABORTED:
        known.aborted[offset] = action
        return
    until = math.inf if action.outcome is Outcome.UNKNOWN else action.last.index
    known.may_land_until[offset] = max(until, known.may_land_until.get(offset, until))


def _end(groups: Groups, action: Action, promises: Promises) -> Iterator[Finding]:
    for name, group_key, offset in _offsets(action):
        known = groups[group_key]
        told = Told(offset, action, is_commit=name != "committed")
        if not told.is_commit and offset in known.aborted and offset not in known.may_land_until:
            yield _aborted(group_key, offset, known.aborted[offset], action)
        if known.reset_until >= action.begin.index:
            # It may have come before the reset or after it. What a read found is not used either.
            if told.is_commit:
                known.update(told)
            continue
        promise = promises.get(group_key)
        if promise is None or offset >= promise.offset:
            known.update(told)
            continue
        if not known.may_go_back_to(told):
            yield _went_back(group_key, promise, told)
        known.last = [told]


def _aborted(group_key: tuple[str, str], offset: int, aborted: Action, reader: Action) -> Finding:
    group, key = group_key
    text = f"group {group!r} has committed offset {offset}, but only a transaction that was aborted said so"
    return Finding(Kind.ABORTED_READ, key, text, [aborted.last, reader.last])


def _went_back(group_key: tuple[str, str], promise: Told, told: Told) -> Finding:
    group, key = group_key
    verb = "committed" if told.is_commit else "found"
    offset = "nothing" if told.offset == NOTHING_COMMITTED else f"offset {told.offset}"
    text = (
        f"process {told.action.process} {verb} {offset} for group {group!r}, but offset {promise.offset} "
        "was committed before, and nobody reset it"
    )
    return Finding(Kind.NONMONOTONIC_COMMIT, key, text, [promise.action.last, told.action.last])
