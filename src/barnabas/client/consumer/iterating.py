"""Iterating over a consumer: records of a poll are handed out one by one, and the position follows each.

So a commit in the middle covers what was handed out and no more, and whoever leaves the loop early finds the
next record where he left."""

from collections.abc import Generator

from barnabas.client.consumer.records import ConsumerRecord, ConsumerRecords
from barnabas.client.consumer.state import Assignments, PartitionState
from barnabas.client.types import TopicPartition


class _Part:
    """One partition's records, from where the position was to where the poll has brought it."""

    def __init__(self, state: PartitionState, records: list[ConsumerRecord]) -> None:
        self.state = state
        self.records = records
        self._version = state.version
        self._end = state.offset
        self._at: int | None = records[0].offset
        state.offset = self._at

    def move(self, offset: int | None) -> None:
        # Unless the user has sought, or read on, meanwhile: then the place is his.
        if self.state.version == self._version and self.state.offset == self._at:
            self.state.offset = self._at = offset

    def finish(self) -> None:
        self.move(self._end)

    def give_back(self) -> None:
        if self.state.version == self._version and self.state.offset == self._at and self._at is not None:
            self.state.place(self._at)


def hand_out(assignments: Assignments, records: ConsumerRecords) -> Generator[ConsumerRecord, None, None]:
    """The records of a poll; what is not taken, because the loop was left, is read again."""
    parts = _parts(assignments, records)
    try:
        while parts:
            part = parts[0]
            for record in part.records:
                part.move(record.offset + 1)
                yield record
            part.finish()
            parts.pop(0)
    finally:
        if parts:
            with assignments.signal:
                for part in parts:
                    part.give_back()
            assignments.wake()


def _parts(assignments: Assignments, records: ConsumerRecords) -> list[_Part]:
    by_partition: dict[TopicPartition, list[ConsumerRecord]] = {
        each: records.records(each) for each in records.partitions()
    }
    with assignments.signal:
        states = assignments.states
        return [
            _Part(states[each], found) for each, found in by_partition.items() if found and each in states
        ]
