"""The order in which a consumer reads: forward, without leaving out anything.

A consumer has a position in each log: the next offset that it has not read. It is known after a poll and
after a seek, and unknown after anything that may have moved the consumer: assign, subscribe, a rebalance, a
transaction that was not committed, a crash. What is read from an unknown position is not judged."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.jepsen.checker.actions import Action, Outcome
from tests.jepsen.checker.evidence import Evidence, Log
from tests.jepsen.checker.verdict import Finding, Kind
from tests.jepsen.history import Operation, Records

SHOWN_OFFSETS_MAX = 5


@dataclass(slots=True)
class Position:
    next_offset: int
    action: Action  # that moved it there


@dataclass(slots=True)
class Consumer:
    positions: dict[str, Position] = field(default_factory=dict)
    is_subscribed: bool = False
    reports_rebalances: bool = False

    def start_again(self, is_subscribed: bool) -> None:
        self.positions.clear()
        self.is_subscribed = is_subscribed
        self.reports_rebalances = False

    def rebalance(self, keys: list[str]) -> None:
        self.reports_rebalances = True
        for key in keys:
            self.positions.pop(key, None)

    def seek(self, action: Action) -> None:
        for key, offset in action.value.items():
            if action.outcome is Outcome.COMMITTED:
                self.positions[key] = Position(offset, action)
            else:
                self.positions.pop(key, None)


def check_reading_order(evidence: Evidence) -> Iterator[Finding]:
    consumers: dict[int, Consumer] = defaultdict(Consumer)
    for action in evidence.actions:
        consumer = consumers[action.process]
        if action.function in ("poll", "txn"):
            yield from _check_polls(evidence, consumer, action)
        elif action.outcome is not Outcome.ABORTED:
            _move(consumer, action)


def _move(consumer: Consumer, action: Action) -> None:
    match action.function:
        case "seek":
            consumer.seek(action)
        case "crash":
            consumer.start_again(is_subscribed=False)
        case "assign" | "subscribe":
            # After an unknown one it is not known either what an older subscription does to the consumer.
            is_certain = action.outcome is Outcome.COMMITTED
            consumer.start_again(is_subscribed=action.function == "subscribe" or not is_certain)


def _check_polls(evidence: Evidence, consumer: Consumer, action: Action) -> Iterator[Finding]:
    for name, *arguments in action.value:
        if name == "rebalance":
            consumer.rebalance(arguments[0])
        elif name == "poll" and arguments:
            if consumer.is_subscribed and not consumer.reports_rebalances:
                # There may have been one before any poll.
                consumer.positions.clear()
            for key, records in arguments[0].items():
                yield from _check_records(evidence.logs[key], key, records, consumer.positions, action)
    if action.outcome is Outcome.UNKNOWN or (action.is_transaction and action.outcome is Outcome.ABORTED):
        # Nobody knows what the poll consumed; and what an aborted transaction consumed may be read again.
        consumer.positions.clear()


def _check_records(
    log: Log, key: str, records: Records, positions: dict[str, Position], action: Action
) -> Iterator[Finding]:
    visible = log.visible
    for offset, _ in records:
        position = positions.get(key)
        if position is None:
            positions[key] = Position(offset + 1, action)
            continue
        expected = position.next_offset
        if offset < expected:
            yield _went_back(key, offset, position, action)
        elif offset > expected:
            first, last = bisect_left(visible, expected), bisect_left(visible, offset)
            if first < last:
                yield _left_out(log, key, offset, position, action)
        position.next_offset = offset + 1
        position.action = action


def _went_back(key: str, offset: int, position: Position, action: Action) -> Finding:
    is_internal = position.action is action
    kind = Kind.INT_NONMONOTONIC_POLL if is_internal else Kind.NONMONOTONIC_POLL
    text = f"process {action.process} read offset {offset}, but it had come to offset {position.next_offset}"
    return Finding(kind, key, text, _proof(position, action))


def _left_out(log: Log, key: str, offset: int, position: Position, action: Action) -> Finding:
    is_internal = position.action is action
    kind = Kind.INT_POLL_SKIP if is_internal else Kind.POLL_SKIP
    first, last = bisect_left(log.visible, position.next_offset), bisect_left(log.visible, offset)
    shown = log.visible[first : min(last, first + SHOWN_OFFSETS_MAX)]
    listed = ", ".join(f"{each} (value {log.values[each]})" for each in shown)
    more = f" and {last - first - len(shown)} more" if last - first > len(shown) else ""
    text = (
        f"process {action.process} had come to offset {position.next_offset} and read offset {offset} next, "
        f"without {listed}{more}, which others read"
    )
    return Finding(kind, key, text, [*_proof(position, action), log.readers[shown[0]].last])


def _proof(position: Position, action: Action) -> list[Operation]:
    return [action.last] if position.action is action else [position.action.last, action.last]
