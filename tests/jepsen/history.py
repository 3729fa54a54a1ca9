"""A history: what the clients of a run asked for, and what they were told, one JSON line per event.

    {"time": 17, "process": 3, "type": "invoke", "function": "send", "value": [["send", "events-0", 41]]}
    {"time": 29, "process": 3, "type": "ok", "function": "send", "value": [["send", "events-0", [7, 41]]]}

A process is one client. It does one operation at a time: an `invoke`, then a completion.

    ok         it happened
    fail       it definitely did not happen, and never will
    unknown    it may have happened, or may still happen later

An operation without a completion (its client was killed) is unknown, too. `time` is in nanoseconds of the
machine's monotonic clock, which all its processes share (`time.monotonic_ns`, Java's `System.nanoTime`).

The value of send, poll, txn, commit, reset and committed is a list of *micro-operations*; txn may have any of
them, send and poll several of their own, the others have one. A completion repeats them with what the client
knows by then. An offset that it does not know is null.

    when invoked                                completed
    ["send", key, value]                        ["send", key, [offset, value]]
                                                ["send", key, [offset, value], outcome]
    ["poll"]                                    ["poll", {key: [[offset, value], ...], ...}]
    -                                           ["rebalance", [key, ...]]
    ["commit", group, {key: offset, ...}]       the same
    ["reset", group, {key: offset, ...}]        the same
    ["committed", group]                        ["committed", group, {key: offset or null, ...}]

- `key` names one log: "topic-partition". A topic that is deleted and created again has new keys.
- A record's `value` is a whole number that no other record of the run has.
- The sends of one send operation are in flight at the same time, in this order. The `outcome` of one of them
  is ok, fail or unknown; without it, it is that of the operation. A txn has one outcome for all.
- A poll in a txn may have its result already when the txn is invoked: it was polled just before.
- `rebalance` comes before the poll during which a consumer's assignment changed, also in a poll operation. It
  has the keys that were lost or gained. A client that reports one reports all, from the first assignment on.
- `commit` moves a group forward; `reset` is a commit that may move it back.
- `"commit": false` beside the value of a txn says that the client meant to abort it.

The value of assign is a list of keys, that of subscribe a list of topics, that of seek is {key: offset}.
`crash` is a single event without a value: the client is gone, and a new one takes over its number.
"""

from __future__ import annotations

import json
import threading
import time
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any, Self

OUTCOMES = frozenset({"ok", "fail", "unknown"})
TYPES = OUTCOMES | {"invoke"}
WITH_MICRO_OPERATIONS = frozenset({"send", "poll", "txn", "commit", "reset", "committed"})
FUNCTIONS = WITH_MICRO_OPERATIONS | {"assign", "subscribe", "seek", "crash"}
MICRO_OPERATIONS = frozenset({"send", "poll", "rebalance", "commit", "reset", "committed"})
EXCERPT_CHARACTERS = 80


class HistoryError(Exception):
    """The history cannot be checked: it does not keep its own rules."""


@dataclass(slots=True)
class Operation:
    """One event of a history. `index` is its place in the merged history."""

    index: int
    time: int
    process: int
    type: str
    function: str
    value: Any
    error: str | None = None
    commit: bool = True

    def __str__(self) -> str:
        value = json.dumps(self.value, default=list)
        if not self.commit:
            value += " to be aborted"
        if self.error:
            value += f" ({self.error})"
        return f"{self.index}: process {self.process} {self.type} {self.function} {value}"


History = list[Operation]


class Records:
    """Offsets and values that a poll returned from one log, like the list [[offset, value], ...] in the file,
    but in a fraction of its memory."""

    __slots__ = ("_numbers",)

    def __init__(self, pairs: list[list[int]]) -> None:
        self._numbers = array("q", [number for offset, value in pairs for number in (offset, value)])

    def __iter__(self) -> Iterator[tuple[int, int]]:
        numbers = iter(self._numbers)
        return zip(numbers, numbers, strict=True)


class Recorder:
    """Writes events to a new file, as they happen. Several threads may use one; each operating system process
    needs a file of its own.

    Every line is flushed, so that a client that is killed leaves all that it had recorded."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        self._lock = threading.Lock()
        self._open: dict[int, dict[str, Any]] = {}

    def invoke(self, process: int, function: str, value: Any = None, commit: bool = True) -> None:
        event = {"process": process, "type": "invoke", "function": function, "value": value}
        if function == "txn":
            event["commit"] = commit
        with self._lock:
            if process in self._open:
                raise HistoryError(
                    f"process {process} invokes {function} before its last operation has ended"
                )
            self._open[process] = event
            self._write(event)

    def complete(self, process: int, type: str, value: Any = None, error: str | None = None) -> None:
        """Ends the operation of this process. Without a value, that of its invocation is written again."""
        with self._lock:
            if process not in self._open:
                raise HistoryError(f"process {process} completes an operation, but it has invoked none")
            event = self._open.pop(process) | {"type": type}
            if value is not None:
                event["value"] = value
            if error is not None:
                event["error"] = error
            self._write(event)

    def crash(self, process: int) -> None:
        """The client of this process is gone. What it was doing is unknown."""
        with self._lock:
            self._open.pop(process, None)
            self._write({"process": process, "type": "ok", "function": "crash", "value": None})

    def _write(self, event: dict[str, Any]) -> None:
        # The time is taken under the lock, so that the lines of a file are in the order of their times.
        line = json.dumps({"time": time.monotonic_ns()} | event, separators=(",", ":"))
        self._file.write(line.encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def merge(paths: Iterable[Path]) -> History:
    """The events of several files in the order of their times."""
    history = [operation for path in paths for operation in read(path)]
    history.sort(key=lambda operation: operation.time)
    for index, operation in enumerate(history):
        operation.index = index
    return history


def read(path: Path) -> Iterator[Operation]:
    """The events of one file; `index` is the line. Part of a last line is ignored: its writer was killed."""
    with path.open("rb") as file:
        for number, line in enumerate(file):
            try:
                event = json.loads(line)
            except ValueError as error:
                if not line.endswith(b"\n"):
                    return
                raise HistoryError(f"{_place(path, number, line)} is not JSON: {error}") from error
            try:
                yield _operation(number, event)
            except (HistoryError, TypeError, KeyError, ValueError, AttributeError, IndexError) as error:
                reason = error if isinstance(error, HistoryError) else repr(error)
                raise HistoryError(f"{_place(path, number, line)} is no event: {reason}") from error


def _place(path: Path, number: int, line: bytes) -> str:
    return f"{path}:{number + 1}: {line[:EXCERPT_CHARACTERS].decode(errors='replace').rstrip()!r}"


def _operation(number: int, event: dict[str, Any]) -> Operation:
    type, function, value = event["type"], event["function"], event["value"]
    if type not in TYPES:
        raise HistoryError(f"type is {type!r}, expected one of {', '.join(sorted(TYPES))}")
    if function not in FUNCTIONS:
        raise HistoryError(f"function is {function!r}, expected one of {', '.join(sorted(FUNCTIONS))}")
    if function in WITH_MICRO_OPERATIONS:
        value = tuple([_micro_operation(each) for each in value])
    return Operation(
        index=number,
        time=int(event["time"]),
        process=int(event["process"]),
        type=intern(type),
        function=intern(function),
        value=value,
        error=event.get("error"),
        commit=event.get("commit", True),
    )


def _micro_operation(value: list[Any]) -> tuple[Any, ...]:
    """The same, checked, and with one copy of each name: a history has millions of them."""
    name = intern(value[0])
    if name not in MICRO_OPERATIONS:
        expected = ", ".join(sorted(MICRO_OPERATIONS))
        raise HistoryError(f"micro-operation is {name!r}, expected one of {expected}")
    if name == "poll" and len(value) > 1:
        return name, {intern(key): Records(pairs) for key, pairs in value[1].items()}
    if name == "send":
        _, key, sent, *outcome = value
        if outcome and outcome not in ([each] for each in OUTCOMES):
            raise HistoryError(f"outcome is {outcome}, expected one of {', '.join(sorted(OUTCOMES))}")
        return name, intern(key), tuple(sent) if isinstance(sent, list) else sent, *map(intern, outcome)
    return name, *value[1:]
