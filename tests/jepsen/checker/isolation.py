"""What transactions show to readers: nothing that is aborted, and nothing before it is committed."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from tests.jepsen.checker.actions import Action, Outcome
from tests.jepsen.checker.evidence import Evidence
from tests.jepsen.checker.verdict import Finding, Kind

# Looking for one more circle costs as much as for the first.
CIRCLES_MAX = 20


def check_isolation(evidence: Evidence) -> Iterator[Finding]:
    yield from _aborted_reads(evidence)
    if evidence.rules.read_committed:
        yield from _reads_of_own_writes(evidence)
        yield from _circular_reads(evidence)


def _aborted_reads(evidence: Evidence) -> Iterator[Finding]:
    for write in evidence.writes.values():
        if write.reader and not evidence.may_be_read(write):
            text = f"value {write.value} was read at offset {write.read_at}, but its sender failed or aborted"
            yield Finding(Kind.ABORTED_READ, write.key, text, [write.action.last, write.reader.last])


def _transactions_that_read_and_write(evidence: Evidence) -> Iterator[Action]:
    for action in evidence.actions:
        if action.is_transaction and any(action.polls()) and any(action.sends()):
            yield action


def _reads_of_own_writes(evidence: Evidence) -> Iterator[Finding]:
    for action in _transactions_that_read_and_write(evidence):
        own = {value for _, value, _, _ in action.sends()}
        for key, offset, value in action.reads():
            if value in own:
                text = f"a transaction read its own value {value} at offset {offset} before it was committed"
                yield Finding(Kind.PRECOMMITTED_READ, key, text, [action.last])


def _circular_reads(evidence: Evidence) -> Iterator[Finding]:
    """A transaction ends before others can read from it, so reads have a direction in time, without circles.

    Only reads count: the records of transactions may be mixed in a log in any order."""
    read_from: dict[Action, set[Action]] = {}
    for action in _transactions_that_read_and_write(evidence):
        if action.outcome is not Outcome.ABORTED:
            writes = (evidence.writes.get(value) for _, _, value in action.reads())
            read_from[action] = {write.action for write in writes if write} - {action}
    for _ in range(CIRCLES_MAX):
        circle = _circle(read_from)
        if not circle:
            return
        order = " -> ".join(f"operation {action.last.index}" for action in [*circle, circle[0]])
        keys = sorted({key for action in circle for key, _, _, _ in action.sends()})
        text = f"each transaction was read by the next, and the last one by the first: {order}"
        yield Finding(Kind.CIRCULAR_READ, ", ".join(keys), text, [action.last for action in circle])
        for action in circle:
            del read_from[action]


def _circle(read_from: dict[Action, set[Action]]) -> list[Action]:
    """Transactions each of which was read by the next one."""
    try:
        TopologicalSorter(read_from).prepare()
    except CycleError as error:
        circle: list[Action] = error.args[1]
        return circle[1:]  # the first one is repeated at the end
    return []
