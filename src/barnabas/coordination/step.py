"""What a state machine returns for a call: records to journal, answers to give, timers to set.

A machine never does I/O. It decides: it reads its state and returns a Step. The runtime journals the records,
passes each to `apply`, which alone changes durable state, and gives the answers when the records are
committed. A replay after a failover calls the same `apply`."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

Reply = TypeVar("Reply")


class JournalRecord(NamedTuple):
    """One record of an internal topic; a value of None is a tombstone."""

    key: bytes
    value: bytes | None


class Producer(NamedTuple):
    """The producer of the transaction that a record belongs to. The record counts when that commits."""

    id: int
    epoch: int


class Waiter(Protocol):
    """A caller that gets its answer later, for example a parked JoinGroup or SyncGroup."""

    def resolve(self, answer: Any) -> None: ...


class _Parked:
    def __repr__(self) -> str:
        return "PARKED"


# The reply of a step whose caller is answered by a later step, through its Waiter.
PARKED: Any = _Parked()


class Timer(NamedTuple):
    """Call `lapse(key)` after the delay. A new timer replaces one with the same key."""

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
    # The reply must be the newest state: it waits until it is certain that nobody else leads the partition.
    must_be_newest: bool = False


def merged(reply: Reply, steps: Sequence[Step[Any]]) -> Step[Reply]:
    """Several steps as one, with records and answers in order. For each timer the last step counts."""
    result: Step[Reply] = Step(reply)
    delays: dict[Hashable, int] = {}
    cancelled: dict[Hashable, None] = {}
    for step in steps:
        result.records += step.records
        result.answers += step.answers
        result.producer = result.producer or step.producer
        result.must_be_newest |= step.must_be_newest
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
        """Apply one journaled record, live or replayed."""
        ...

    def apply_marker(self, producer: Producer, is_commit: bool) -> None:
        """A client's transaction ended on this partition."""
        ...

    def loaded(self, now_ms: int) -> Step[None]:
        """All records are replayed: set the timers that the state needs."""
        ...

    def lapse(self, key: Hashable, now_ms: int) -> Step[None]:
        """A timer ran out."""
        ...
