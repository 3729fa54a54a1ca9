"""The journal of a coordinator: one partition of an internal topic.

The broker implements this on a partition, tests on a list. Coordinators use nothing else of a log."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from barnabas.coordination.step import JournalRecord, Producer
from barnabas.errors import KafkaError


class Entry(NamedTuple):
    """A record that a replay reads back."""

    record: JournalRecord
    producer: Producer | None


class Marker(NamedTuple):
    """The end of a client's transaction on this partition."""

    producer: Producer
    is_commit: bool


Replayed: TypeAlias = Entry | Marker


class Journal(Protocol):
    @property
    def end_offset(self) -> int:
        """The offset after the last record, committed or not."""
        ...

    def append(self, records: Sequence[JournalRecord], producer: Producer | None) -> int:
        """Write the records as one batch, all or none, and return the offset after it. Raises KafkaError."""
        ...

    def when_committed(self, end_offset: int, callback: Callable[[KafkaError | None], None]) -> None:
        """Call back, perhaps at once, when everything below `end_offset` is committed.

        The callback gets an error if that can no longer happen, and None otherwise."""
        ...

    def is_led_since(self, moment: float) -> bool:
        """Whether this broker was certainly the leader at some time after `moment` of the monotonic clock. If
        not, it may become certain soon, or another broker may lead already."""
        ...

    def replay(self) -> Iterator[list[Replayed]]:
        """Everything from the start of the log, in portions of limited size."""
        ...
