"""Judges a history: check(history, rules) says what happened that may never happen.

Every check is a function of the evidence alone, so they can be read in any order:

    actions.py         operations from invocation to completion, and whether they happened
    evidence.py        what that proves about values and logs
    contents.py        lost, unseen, torn, duplicate and misplaced values
    isolation.py       aborted, precommitted and circular reads
    reading_order.py   consumers that skip or go back
    sending_order.py   records of one process out of order
    group_offsets.py   committed offsets that go back
    processing.py      groups that process a record twice or never
    verdict.py         the kinds of findings, the rules, and the verdict

Kafka allows these, so they are not looked for: records of several transactions mixed in one log (G0,
int-send-skip, and circles through the order of writes); a consumer that skips or goes back after it
subscribed or was rebalanced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain

from tests.jepsen.checker.actions import Outcome, pair
from tests.jepsen.checker.contents import check_contents
from tests.jepsen.checker.evidence import Evidence, collect
from tests.jepsen.checker.group_offsets import check_group_offsets
from tests.jepsen.checker.isolation import check_isolation
from tests.jepsen.checker.processing import check_processing
from tests.jepsen.checker.reading_order import check_reading_order
from tests.jepsen.checker.sending_order import check_sending_order
from tests.jepsen.checker.verdict import Counts, Finding, Kind, Rules, Verdict
from tests.jepsen.history import Operation

__all__ = ["Counts", "Finding", "Kind", "Rules", "Verdict", "check"]

CHECKS = (
    check_contents,
    check_isolation,
    check_reading_order,
    check_sending_order,
    check_group_offsets,
    check_processing,
)


def check(history: Iterable[Operation], rules: Rules | None = None) -> Verdict:
    evidence = collect(pair(history), rules or Rules())
    findings = chain.from_iterable(check(evidence) for check in CHECKS)
    return Verdict(list(findings), _counts(evidence))


def _counts(evidence: Evidence) -> Counts:
    outcomes = Counter(write.outcome for write in evidence.writes.values())
    return Counts(
        operations=len(evidence.actions),
        committed=outcomes[Outcome.COMMITTED],
        aborted=outcomes[Outcome.ABORTED],
        unknown=outcomes[Outcome.UNKNOWN],
        read=sum(write.reader is not None for write in evidence.writes.values()),
    )
