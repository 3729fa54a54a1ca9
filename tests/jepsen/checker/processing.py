"""Groups that read, process and write in transactions: every record is processed exactly once.

Such a transaction has polls and commits the group's offsets. What it polled below these offsets it has
processed, if it was committed. If its outcome is unknown, it was committed if any of its records was read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.jepsen.checker.actions import Action, Outcome
from tests.jepsen.checker.evidence import Evidence
from tests.jepsen.checker.verdict import Finding, Kind


@dataclass(slots=True)
class Progress:
    """What one group has done in one log."""

    processed: dict[int, Action] = field(default_factory=dict)
    may_be_processed: set[int] = field(default_factory=set)
    committed: int = 0
    committed_by: Action | None = None


def check_processing(evidence: Evidence) -> Iterator[Finding]:
    progress: dict[tuple[str, str], Progress] = defaultdict(Progress)
    for action in evidence.actions:
        outcome = _outcome(evidence, action)
        if outcome is Outcome.ABORTED:
            continue
        for group, key, offset in _commits(evidence, action):
            yield from _process(progress[group, key], group, key, offset, action, outcome)
    for (group, key), each in progress.items():
        yield from _unprocessed(evidence, each, group, key)


def _outcome(evidence: Evidence, action: Action) -> Outcome:
    if not action.is_transaction or action.outcome is not Outcome.UNKNOWN:
        return action.outcome
    writes = [evidence.writes[value] for _, value, _, _ in action.sends()]
    if any(write.reader for write in writes):
        return Outcome.COMMITTED
    return Outcome.ABORTED if writes and evidence.rules.read_to_end else Outcome.UNKNOWN


def _commits(evidence: Evidence, action: Action) -> Iterator[tuple[str, str, int]]:
    """Group, key and offset of the commits of a transaction."""
    if action.is_transaction:
        for name, *arguments in action.value:
            if name == "commit" and arguments[0] in evidence.rules.exactly_once_groups:
                group, offsets = arguments
                for key, offset in offsets.items():
                    yield group, key, offset


def _process(
    progress: Progress, group: str, key: str, end: int, action: Action, outcome: Outcome
) -> Iterator[Finding]:
    polled = [offset for each, offset, _ in action.reads() if each == key and offset < end]
    if outcome is Outcome.UNKNOWN:
        progress.may_be_processed.update(polled)
        return
    again = [offset for offset in polled if offset in progress.processed]
    if again:
        first = progress.processed[again[0]]
        text = f"group {group!r} processed offset {again[0]} in two transactions that were committed"
        text += f", and {len(again) - 1} more offsets" if len(again) > 1 else ""
        yield Finding(Kind.PROCESSED_TWICE, key, text, [first.last, action.last])
    for offset in polled:
        progress.processed.setdefault(offset, action)
    if end > progress.committed:
        progress.committed, progress.committed_by = end, action


def _unprocessed(evidence: Evidence, progress: Progress, group: str, key: str) -> Iterator[Finding]:
    log = evidence.logs[key]
    missing = [
        offset
        for offset in log.visible
        if offset < progress.committed
        and offset not in progress.processed
        and offset not in progress.may_be_processed
    ]
    if missing and progress.committed_by:
        text = (
            f"group {group!r} has committed offset {progress.committed}, but no committed transaction "
            f"has processed offset {missing[0]} (value {log.values[missing[0]]})"
        )
        text += f", and {len(missing) - 1} more offsets" if len(missing) > 1 else ""
        operations = [log.readers[missing[0]].last, progress.committed_by.last]
        yield Finding(Kind.PROCESSED_NEVER, key, text, operations)
