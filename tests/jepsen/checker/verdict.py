"""What the checker looks for, and what it found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from tests.jepsen.history import Operation

SHOWN_PER_KIND = 5
OPERATION_CHARACTERS = 200


class Kind(StrEnum):
    """What may never happen. Where Jepsen's checker for Kafka has a name for it, this is the name."""

    # What the logs hold.
    LOST_WRITE = "lost-write"  # acknowledged, never read, although a higher offset was
    UNSEEN = "unseen"  # acknowledged, and not read by the end
    TORN_TRANSACTION = "torn-transaction"  # an unknown transaction of which only a part is there
    INCONSISTENT_OFFSETS = "inconsistent-offsets"  # two values at one offset
    DUPLICATE = "duplicate"  # one value at two offsets
    UNSENT_READ = "unsent-read"  # read from a log to which nobody sent it
    # What transactions show.
    ABORTED_READ = "G1a"  # the value of an operation that failed, or was aborted, was read
    PRECOMMITTED_READ = "precommitted-read"  # a transaction read what it wrote itself
    CIRCULAR_READ = "G1c"  # transactions read from each other in a circle
    # The order in which a consumer reads: inside one operation ("int"), and from one to the next.
    INT_POLL_SKIP = "int-poll-skip"
    INT_NONMONOTONIC_POLL = "int-nonmonotonic-poll"
    POLL_SKIP = "poll-skip"
    NONMONOTONIC_POLL = "nonmonotonic-poll"
    # The order in which the records of one process are in a log.
    INT_NONMONOTONIC_SEND = "int-nonmonotonic-send"
    NONMONOTONIC_SEND = "nonmonotonic-send"
    # Groups.
    NONMONOTONIC_COMMIT = "nonmonotonic-commit"  # a group's committed offset went back, and nobody reset it
    # Groups that process what they read in transactions, with the offsets: each record exactly once.
    PROCESSED_TWICE = "processed-twice"  # by two transactions that were committed
    PROCESSED_NEVER = "processed-never"  # by none, although the group has committed a higher offset


@dataclass(frozen=True, slots=True)
class Rules:
    """What the clients of a run had asked for."""

    idempotent: bool = True
    read_committed: bool = True
    # After the last fault every log was read up to its end, so a value that nobody read is missing.
    read_to_end: bool = True
    # Groups that process every record in a transaction that polls it, and commits the offset after it.
    exactly_once_groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Finding:
    kind: Kind
    key: str
    text: str
    operations: list[Operation]  # those that prove it

    def __str__(self) -> str:
        lines = [f"{self.kind} in {self.key}: {self.text}"]
        for operation in self.operations:
            line = str(operation)
            is_long = len(line) > OPERATION_CHARACTERS
            lines.append("    " + (line[: OPERATION_CHARACTERS - 4] + " ..." if is_long else line))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there was to judge: a history in which nothing happened is clean, too."""

    operations: int
    committed: int  # values that were certainly written
    aborted: int
    unknown: int
    read: int  # values that somebody read


@dataclass(frozen=True, slots=True)
class Verdict:
    """True if nothing was found."""

    findings: list[Finding]
    counts: Counts

    @property
    def ok(self) -> bool:
        return not self.findings

    def __bool__(self) -> bool:
        return self.ok

    @property
    def kinds(self) -> set[Kind]:
        return {finding.kind for finding in self.findings}

    def __str__(self) -> str:
        counts = self.counts
        lines = [
            f"{counts.operations} operations; values: {counts.committed} committed, "
            f"{counts.aborted} aborted, {counts.unknown} unknown, {counts.read} read"
        ]
        if self.ok:
            return "\n".join([*lines, "nothing found"])
        totals = Counter(finding.kind for finding in self.findings)
        lines.append("found: " + ", ".join(f"{number} {kind}" for kind, number in totals.items()))
        shown: Counter[Kind] = Counter()
        for finding in self.findings:
            shown[finding.kind] += 1
            if shown[finding.kind] <= SHOWN_PER_KIND:
                lines.append(str(finding))
        hidden = len(self.findings) - sum(min(number, SHOWN_PER_KIND) for number in totals.values())
        if hidden:
            lines.append(f"and {hidden} more")
        return "\n".join(lines)
