"""The order in which the records of one process are in a log: the order in which it sent them.

Inside one operation this is the promise of an idempotent producer, also of sends that are in flight at the
same time. From one operation to the next it holds also if the client was replaced, because an acknowledged
record is in the log before the next one is sent. A record whose outcome is unknown may still be on its way
and land behind later ones, so those are not compared with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.jepsen.checker.actions import Action, Outcome
from tests.jepsen.checker.evidence import Evidence, Write
from tests.jepsen.checker.verdict import Finding, Kind


class Placed(NamedTuple):
    """A value whose place in the log is known."""

    offset: int
    write: Write


def check_sending_order(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.rules.idempotent:
        return
    highest: dict[tuple[int, str], Placed] = {}  # of each process and key, in earlier actions
    for action in evidence.actions:
        last: dict[str, Placed] = {}
        for placed in _placed_writes(evidence, action):
            key = placed.write.key
            earlier = highest.get((action.process, key))
            if earlier and earlier.offset > placed.offset:
                yield _out_of_order(Kind.NONMONOTONIC_SEND, earlier, placed)
            before = last.get(key)
            if before and before.offset > placed.offset:
                yield _out_of_order(Kind.INT_NONMONOTONIC_SEND, before, placed)
            last[key] = placed
        for placed in _placed_writes(evidence, action):
            if placed.write.outcome is not Outcome.UNKNOWN:
                place = action.process, placed.write.key
                highest[place] = max(highest.get(place, placed), placed, key=lambda placed: placed.offset)


def _placed_writes(evidence: Evidence, action: Action) -> Iterator[Placed]:
    for _, value, _, _ in action.sends():
        write = evidence.writes[value]
        if write.offset is not None:
            yield Placed(write.offset, write)


def _out_of_order(kind: Kind, before: Placed, placed: Placed) -> Finding:
    text = (
        f"process {placed.write.action.process} sent value {before.write.value} and then value "
        f"{placed.write.value}, but they are at the offsets {before.offset} and {placed.offset}"
    )
    actions = dict.fromkeys([before.write.action, placed.write.action])  # often the same one
    return Finding(kind, placed.write.key, text, [action.last for action in actions])
