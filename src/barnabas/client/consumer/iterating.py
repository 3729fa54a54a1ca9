"""Iterating over a consumer: records of a poll are handed out one by one, and the position follows each.

So a commit in the middle covers what was handed out and no more, and whoever leaves the loop early finds the
next record where he left."""

from collections.abc import Generator

from barnabas.client.consumer.records import ConsumerRecord, ConsumerRecords
from barnabas.client.consumer.state import Assignments, PartitionState
from barnabas.client.types import TopicPartition


class _Part:
    """One partition's records, from where the position was to where the poll has brought it."""

    __slots__ = ("at", "end", "records", "state", "version")

    def __init__(self, state: PartitionState, records: list[ConsumerRecord]) -> None:
        self.state = state
        self.records = records
        self.version = state.version
        self.end = state.offset
        self.at: int | None = records[0].offset
        state.offset = self.at

    @property
    def is_ours(self) -> bool:
        """Unless the user has sought, or read on, meanwhile: then the place is his."""
        return self.state.version == self.version and self.state.offset == self.at


def hand_out(assignments: Assignments, records: ConsumerRecords) -> Generator[ConsumerRecord, None, None]:
    """The records of a poll; what is not taken, because the loop was left, is read again."""
    parts = _parts(assignments, records)
    try:
        while parts:
            part = parts[0]
            state, version = part.state, part.version
            for record in part.records:
                # As is_ours, spelled out: this is done for every record.
                if state.offset == part.at and state.version == version:
                    state.offset = part.at = record.offset + 1
                yield record
            if part.is_ours:
                state.offset = part.end
            parts.pop(0)
    finally:
        if parts:
            _give_back(assignments, parts)


def _give_back(assignments: Assignments, parts: list[_Part]) -> None:
    with assignments.signal:
        for part in parts:
            if part.is_ours and part.at is not None:
                part.state.place(part.at)
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
