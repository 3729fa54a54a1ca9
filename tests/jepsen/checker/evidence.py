"""Evidence: what a history proves about each value and each log. All checks start from it.

Offsets have gaps (markers of transactions, aborted records), so the order of a log is the order of the
offsets that somebody saw: in an acknowledgement or in a poll."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.jepsen.checker.actions import Action, Outcome
from tests.jepsen.checker.verdict import Rules
from tests.jepsen.history import HistoryError


@dataclass(slots=True, eq=False)
class Write:
    """One value: who sent it, and where it was seen first."""

    key: str
    value: int
    action: Action
    acknowledged_at: int | None
    outcome: Outcome
    read_at: int | None = None
    reader: Action | None = None

    @property
    def offset(self) -> int | None:
        return self.read_at if self.acknowledged_at is None else self.acknowledged_at


@dataclass(slots=True)
class Log:
    # The first value that was seen at each offset, in an acknowledgement or a poll, and who saw it.
    values: dict[int, int] = field(default_factory=dict)
    witnesses: dict[int, Action] = field(default_factory=dict)
    # The first reader of each offset at which there is a value that may be read.
    readers: dict[int, Action] = field(default_factory=dict)
    # The same offsets, sorted: what every consumer on its way through the log must see.
    visible: list[int] = field(default_factory=list)

    def add(self, offset: int, value: int, witness: Action) -> None:
        if self.values.setdefault(offset, value) == value:
            self.witnesses.setdefault(offset, witness)

    @property
    def highest_read(self) -> int:
        return self.visible[-1] if self.visible else -1


@dataclass(slots=True)
class Unsent:
    """A value that was read from a log to which nobody sent it."""

    key: str
    offset: int
    value: int
    reader: Action


@dataclass(slots=True)
class Evidence:
    rules: Rules
    actions: list[Action]
    writes: dict[int, Write] = field(default_factory=dict)
    logs: dict[str, Log] = field(default_factory=lambda: defaultdict(Log))
    unsent: dict[tuple[str, int], Unsent] = field(default_factory=dict)

    def may_be_read(self, write: Write) -> bool:
        """False if the value can never have been in the log, or is hidden from readers for ever."""
        is_hidden = self.rules.read_committed or not write.action.is_transaction
        return not (is_hidden and write.outcome is Outcome.ABORTED)

    def places(self) -> Iterator[tuple[str, int, int, Action]]:
        """Key, offset and value of everything that anybody was told, and who was told."""
        for action in self.actions:
            for key, value, offset, _ in action.sends():
                if offset is not None:
                    yield key, offset, value, action
            for key, offset, value in action.reads():
                yield key, offset, value, action


def collect(actions: list[Action], rules: Rules) -> Evidence:
    evidence = Evidence(rules, actions)
    for action in actions:
        _collect_sends(evidence, action)
    for action in actions:
        _collect_reads(evidence, action)
    for log in evidence.logs.values():
        log.visible = sorted(log.readers)
    return evidence


def _collect_sends(evidence: Evidence, action: Action) -> None:
    for key, value, offset, outcome in action.sends():
        if value in evidence.writes:
            first = evidence.writes[value].action.last
            raise HistoryError(
                f"value {value} was sent twice, values must be unique:\n{first}\n{action.last}"
            )
        evidence.writes[value] = Write(key, value, action, offset, outcome)
        if offset is not None:
            # True of aborted transactions as well: an acknowledged record stays in its place, unseen.
            evidence.logs[key].add(offset, value, action)


def _collect_reads(evidence: Evidence, action: Action) -> None:
    for key, offset, value in action.reads():
        log = evidence.logs[key]
        log.add(offset, value, action)
        write = evidence.writes.get(value)
        if write is None or write.key != key:
            evidence.unsent.setdefault((key, value), Unsent(key, offset, value, action))
            continue
        if write.action is action and evidence.rules.read_committed:
            continue  # too early, whatever becomes of it: it does not prove that the value was committed
        if write.reader is None:
            write.reader, write.read_at = action, offset
        if evidence.may_be_read(write):
            log.readers.setdefault(offset, action)
