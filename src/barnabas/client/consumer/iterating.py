"""Iterating over a consumer: the records of a poll are returned one by one, and the position moves with each.

So a commit in the loop commits only the records returned so far, and after leaving the loop early, reading
continues with the next record."""

from collections.abc import Generator
from typing import Any

from barnabas.client.consumer.records import ConsumerRecord, ConsumerRecords
from barnabas.client.consumer.state import Assignments, PartitionState
from barnabas.client.generic import K, V
from barnabas.client.types import TopicPartition


class _Part:
    """The polled records of one partition. `at` is the current position, `end` the position after the
    poll."""

    __slots__ = ("at", "end", "records", "state", "version")

    def __init__(self, state: PartitionState, records: list[Any]) -> None:
        self.state = state
        self.records = records
        self.version = state.version
        self.end = state.offset
        self.at: int | None = records[0].offset
        state.offset = self.at

    @property
    def is_unchanged(self) -> bool:
        """Whether the position is still where this iteration has set it: the user may have moved it."""
        return self.state.version == self.version and self.state.offset == self.at


def iterate_records(
    assignments: Assignments, records: ConsumerRecords[K, V]
) -> Generator[ConsumerRecord[K, V], None, None]:
    """The records of a poll. If the loop is left early, the remaining records are read again later."""
    parts = _parts(assignments, records)
    try:
        while parts:
            part = parts[0]
            state, version = part.state, part.version
            for record in part.records:
                # The same as is_unchanged, inlined because it runs for every record.
                if state.offset == part.at and state.version == version:
                    state.offset = part.at = record.offset + 1
                yield record
            if part.is_unchanged:
                state.offset = part.end
            parts.pop(0)
    finally:
        if parts:
            _give_back(assignments, parts)


def _give_back(assignments: Assignments, parts: list[_Part]) -> None:
    with assignments.signal:
        for part in parts:
            if part.is_unchanged and part.at is not None:
                part.state.move_to(part.at)
    assignments.wake()


def _parts(assignments: Assignments, records: ConsumerRecords[K, V]) -> list[_Part]:
    by_partition: dict[TopicPartition, list[ConsumerRecord[K, V]]] = {
        each: records.records(each) for each in records.partitions()
    }
    with assignments.signal:
        states = assignments.states
        return [
            _Part(states[each], polled) for each, polled in by_partition.items() if polled and each in states
        ]
