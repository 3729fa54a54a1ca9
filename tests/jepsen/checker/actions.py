"""Actions: operations from their invocation to their completion, and whether they happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tests.jepsen.history import HistoryError, Operation, Records


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


OUTCOMES = {"ok": Outcome.COMMITTED, "fail": Outcome.ABORTED, "unknown": Outcome.UNKNOWN}


@dataclass(slots=True, eq=False)
class Action:
    begin: Operation
    end: Operation | None  # None if the client did not live to see it
    outcome: Outcome

    @property
    def process(self) -> int:
        return self.begin.process

    @property
    def function(self) -> str:
        return self.begin.function

    @property
    def is_transaction(self) -> bool:
        return self.begin.function == "txn"

    @property
    def last(self) -> Operation:
        """The event that says most about it."""
        return self.end or self.begin

    @property
    def value(self) -> Any:
        return self.last.value

    def sends(self) -> Iterator[tuple[str, int, int | None, Outcome]]:
        """Key, value, the acknowledged offset, and the outcome."""
        if self.function in ("send", "txn"):
            for name, *arguments in self.value:
                if name == "send":
                    key, sent, *own = arguments
                    offset, value = (None, sent) if isinstance(sent, int) else sent
                    has_own = own and not self.is_transaction
                    yield key, value, offset, OUTCOMES[own[0]] if has_own else self.outcome

    def polls(self) -> Iterator[dict[str, Records]]:
        """For each poll that has a result: for each key offsets and values.

        A consumer reads what it reads, also in a transaction that is aborted."""
        if self.function in ("poll", "txn"):
            for name, *arguments in self.value:
                if name == "poll" and arguments:
                    yield arguments[0]

    def reads(self) -> Iterator[tuple[str, int, int]]:
        """Key, offset and value of every record that was read."""
        for poll in self.polls():
            for key, records in poll.items():
                for offset, value in records:
                    yield key, offset, value


def pair(history: Iterable[Operation]) -> list[Action]:
    """Puts invocations and completions together. The actions of each process are in their order."""
    actions: list[Action] = []
    begun: dict[int, Operation] = {}
    for operation in history:
        before = begun.pop(operation.process, None)
        if operation.function == "crash":
            if before:
                actions.append(_action(before, None))
            actions.append(_action(operation, operation))
        elif operation.type == "invoke":
            if before:
                raise HistoryError(
                    f"process began a second operation, without a crash between them:\n{before}\n{operation}"
                )
            begun[operation.process] = operation
        elif before is None or before.function != operation.function:
            raise HistoryError(f"completion without its invocation: {operation}")
        else:
            actions.append(_action(before, operation))
    actions += [_action(operation, None) for operation in begun.values()]
    return actions


def _action(begin: Operation, end: Operation | None) -> Action:
    return Action(begin, end, _outcome(begin, end))


def _outcome(begin: Operation, end: Operation | None) -> Outcome:
    if not begin.commit:
        # Nobody asked for a commit, so it is certain that there is none, however the abort ended.
        return Outcome.ABORTED
    return Outcome.UNKNOWN if end is None else OUTCOMES[end.type]
