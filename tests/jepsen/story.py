"""Histories that are written by hand, as a story of a few clients."""

from __future__ import annotations

import itertools
from typing import Any

from tests.jepsen.checker import Kind, Rules, Verdict, check
from tests.jepsen.history import History, Operation

KEY, OTHER_KEY = "events-0", "events-1"
GROUP, COPIERS = "readers", "copiers"


def sent(value: int, at: int | None = None, key: str = KEY) -> tuple[Any, ...]:
    """A send inside a transaction; `at` is the offset that was acknowledged."""
    return "send", key, (at, value)


def polled(*records: tuple[int, int], key: str = KEY) -> tuple[Any, ...]:
    """A poll that returned these offsets and values."""
    return "poll", {key: records}


def rebalanced(*keys: str) -> tuple[Any, ...]:
    return "rebalance", keys


def offset_sent(offset: int, key: str = KEY, group: str = GROUP) -> tuple[Any, ...]:
    """An offset that is committed together with a transaction."""
    return "commit", group, {key: offset}


class Story:
    def __init__(self) -> None:
        self.history: History = []
        self._processes = itertools.count()

    def client(self) -> Client:
        return Client(self, next(self._processes))

    def clients(self, count: int) -> list[Client]:
        return [self.client() for _ in range(count)]

    def record(self, process: int, type: str, function: str, value: Any, commit: bool = True) -> None:
        index = len(self.history)
        self.history.append(Operation(index, index, process, type, function, value, commit=commit))

    def verdict(self, rules: Rules | None = None) -> Verdict:
        return check(self.history, rules)

    def kinds(self, rules: Rules | None = None) -> list[Kind]:
        """What is found, one entry for each finding."""
        return [finding.kind for finding in self.verdict(rules).findings]


class Client:
    def __init__(self, story: Story, process: int) -> None:
        self._story = story
        self._process = process

    # ---- in two steps, for operations at the same time

    def begins(self, function: str, *micro: tuple[Any, ...], commit: bool = True) -> None:
        self._begun = function, commit
        self._story.record(self._process, "invoke", function, micro, commit)

    def ends(self, outcome: str, *micro: tuple[Any, ...]) -> None:
        function, commit = self._begun
        self._story.record(self._process, outcome, function, micro, commit)

    # ---- in one step

    def _does(self, outcome: str, function: str, value: Any, commit: bool = True) -> None:
        self._story.record(self._process, "invoke", function, value, commit)
        self._story.record(self._process, outcome, function, value, commit)

    def sends(self, value: int, at: int | None = None, key: str = KEY, outcome: str = "ok") -> None:
        self._does(outcome, "send", [sent(value, at, key)])

    def sends_together(self, *micro: tuple[Any, ...], outcome: str = "ok") -> None:
        """Several sends in flight; each may have an outcome of its own as its last part."""
        self._does(outcome, "send", micro)

    def polls(self, *records: tuple[int, int], key: str = KEY, outcome: str = "ok") -> None:
        self._does(outcome, "poll", [polled(*records, key=key)])

    def polls_after_rebalance(self, *records: tuple[int, int], keys: tuple[str, ...] = (KEY,)) -> None:
        self._does("ok", "poll", [rebalanced(*keys), polled(*records)])

    def transaction(self, *micro: tuple[Any, ...], outcome: str = "ok", commit: bool = True) -> None:
        self._does(outcome, "txn", micro, commit)

    def aborts(self, *micro: tuple[Any, ...], outcome: str = "ok") -> None:
        """A transaction that the client meant to abort."""
        self.transaction(*micro, outcome=outcome, commit=False)

    def assigns(self, *keys: str, outcome: str = "ok") -> None:
        self._does(outcome, "assign", keys or (KEY,))

    def subscribes(self, *topics: str) -> None:
        self._does("ok", "subscribe", topics or ("events",))

    def seeks(self, offset: int, key: str = KEY, outcome: str = "ok") -> None:
        self._does(outcome, "seek", {key: offset})

    def crashes(self) -> None:
        self._story.record(self._process, "ok", "crash", None)

    # ---- groups

    def commits(self, offset: int, outcome: str = "ok") -> None:
        self._does(outcome, "commit", [("commit", GROUP, {KEY: offset})])

    def resets(self, offset: int, outcome: str = "ok") -> None:
        self._does(outcome, "reset", [("reset", GROUP, {KEY: offset})])

    def finds_committed(self, offset: int | None) -> None:
        self._does("ok", "committed", [("committed", GROUP, {KEY: offset})])
