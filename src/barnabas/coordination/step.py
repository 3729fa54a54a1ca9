"""What a state machine answers to a call: records to journal, answers to give, timers to set.

A machine never does I/O. It decides (a pure look at its state that returns a Step), the runtime journals
the records, hands each to `apply`, which alone changes durable state, and gives the answers once the
records are committed. Replay after a failover runs the same `apply`."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

Reply = TypeVar("Reply")


class JournalRecord(NamedTuple):
    """One record of an internal topic; a value of None is a tombstone."""

    key: bytes
    value: bytes | None


class Producer(NamedTuple):
    """Whose transaction a record belongs to; its effect shows when that transaction commits."""

    id: int
    epoch: int


class Waiter(Protocol):
    """Somebody whose answer comes with a later step: a parked JoinGroup or SyncGroup."""

    def resolve(self, answer: Any) -> None: ...


class _Parked:
    def __repr__(self) -> str:
        return "PARKED"


# The reply of a step whose caller is answered later, through the Waiter it gave.
PARKED: Any = _Parked()


class Timer(NamedTuple):
    """Call `lapse(key)` after so long; setting a key again replaces its timer."""

    key: Hashable
    delay_ms: int


@dataclass(slots=True)
class Step(Generic[Reply]):
    reply: Reply
    records: list[JournalRecord] = field(default_factory=list)
    # Set for records that belong to a client's transaction (TxnOffsetCommit).
    producer: Producer | None = None
    answers: list[tuple[Waiter, Any]] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)
    cancelled: list[Hashable] = field(default_factory=list)


def merged(reply: Reply, steps: Sequence[Step[Any]]) -> Step[Reply]:
    """Records and answers in order; of what the steps say about a timer, the last word counts."""
    result: Step[Reply] = Step(reply)
    delays: dict[Hashable, int] = {}
    cancelled: dict[Hashable, None] = {}
    for step in steps:
        result.records += step.records
        result.answers += step.answers
        result.producer = result.producer or step.producer
        for key in step.cancelled:
            delays.pop(key, None)
            cancelled[key] = None
        for timer in step.timers:
            cancelled.pop(timer.key, None)
            delays[timer.key] = timer.delay_ms
    result.timers = [Timer(key, delay_ms) for key, delay_ms in delays.items()]
    result.cancelled = list(cancelled)
    return result


class Machine(Protocol):
    """The state of one partition of an internal topic."""

    def apply(self, record: JournalRecord, producer: Producer | None) -> None:
        """Take in one journaled record, live or replayed."""
        ...

    def apply_marker(self, producer: Producer, is_commit: bool) -> None:
        """A client's transaction ended on this partition."""
        ...

    def loaded(self, now_ms: int) -> Step[None]:
        """All records are replayed: set the timers that follow from the state."""
        ...

    def lapse(self, key: Hashable, now_ms: int) -> Step[None]:
        """A timer ran out."""
        ...
