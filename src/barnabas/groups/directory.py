"""All groups of one machine with their offsets, and what each record of the journal does to them.

A classic group may exist without a record: while its first members join, or for the offsets of consumers that
are in no group. A consumer group exists only if it has records. When classic members join an empty consumer
group, a classic group replaces it at once. The old group's records are removed together with the first record
of the new one. So memory may be ahead of the journal, but nothing is lost if the memory is lost."""

import logging
from collections.abc import Iterator
from typing import TypeAlias, cast

from barnabas.coordination.step import JournalRecord, Producer
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.offsets import OffsetStore
from barnabas.groups.record_schemas import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.groups.records import GroupRecord, decode, record_type
from barnabas.groups.settings import GroupSettings, TopicsView

logger = logging.getLogger(__name__)

AnyGroup: TypeAlias = ClassicGroup | ConsumerGroup


class GroupDirectory:
    def __init__(self, settings: GroupSettings, topics: TopicsView) -> None:
        self.offsets = OffsetStore()
        self._settings = settings
        self._topics = topics
        self._groups: dict[str, AnyGroup] = {}
        # Empty consumer groups that were replaced by a classic group and are still in the journal.
        self._replaced: dict[str, ConsumerGroup] = {}
        # Record types that are skipped; each is logged once.
        self._unknown_types: set[int] = set()

    def __iter__(self) -> Iterator[AnyGroup]:
        return iter(list(self._groups.values()))

    def ids(self) -> list[str]:
        return list(self._groups)

    def in_journal(self) -> Iterator[AnyGroup]:
        """The groups that a replay of the journal would give."""
        yield from self._replaced.values()
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup) or group.saved is not None:
                yield group

    def find(self, group_id: str) -> AnyGroup | None:
        return self._groups.get(group_id)

    def classic(self, group_id: str) -> ClassicGroup:
        """The classic group with that id; a new empty one if there is none."""
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            group = self._groups[group_id] = ClassicGroup(group_id, self._settings)
        return group

    def new_consumer(self, group_id: str) -> ConsumerGroup:
        """A consumer group that is not in the directory yet: its first record puts it there."""
        return ConsumerGroup(group_id, self._settings, self._topics)

    def replace_empty_consumer_group(self, group_id: str) -> None:
        """Classic members join: let a classic group replace a consumer group that has no members."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup) and group.is_empty:
            self._replaced[group_id] = group
            del self._groups[group_id]

    def drop_if_unused(self, group_id: str) -> None:
        """Drop a classic group that has no record, no members and no offsets."""
        group = self._groups.get(group_id)
        if not (isinstance(group, ClassicGroup) and group.is_unused):
            return
        if group_id in self._replaced:
            self._groups[group_id] = self._replaced.pop(group_id)
        elif not self.offsets.has_group(group_id):
            del self._groups[group_id]

    def tombstones_of_replaced(self, group_id: str) -> list[JournalRecord]:
        """What removes the replaced consumer group; must be written before the next record of this group."""
        replaced = self._replaced.get(group_id)
        return [] if replaced is None else replaced.tombstones()

    def tombstones(self, group: AnyGroup) -> list[JournalRecord]:
        return self.tombstones_of_replaced(group.group_id) + group.tombstones()

    def add_groups_of_offsets(self) -> None:
        """Add a group for offsets that have none: they were committed by consumers that are in no group."""
        for group_id in self.offsets.group_ids():
            if group_id not in self._groups:
                self.classic(group_id)

    # Records

    def apply(self, journaled: JournalRecord, producer: Producer | None) -> None:
        record = decode(journaled)
        if record is None:
            self._skip(record_type(journaled))
            return
        key, value = record
        if isinstance(key, OffsetCommitKey):
            self._apply_offset(key, cast(OffsetCommitValue | None, value), producer)
        elif isinstance(key, GroupMetadataKey):
            self._apply_classic(key.group, cast(GroupMetadataValue | None, value))
        else:
            self._apply_consumer(key.group_id, record)

    def _skip(self, number: int) -> None:
        if number not in self._unknown_types:
            self._unknown_types.add(number)
            logger.warning("skipping records of unknown type %d in __consumer_offsets", number)

    def _apply_offset(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer: Producer | None
    ) -> None:
        if value is not None and key.group not in self._groups:
            self.classic(key.group)
        self.offsets.apply(key, value, None if producer is None else producer.id)

    def _apply_classic(self, group_id: str, value: GroupMetadataValue | None) -> None:
        self._replaced.pop(group_id, None)
        if value is not None:
            self.classic(group_id).apply(value)
            return
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup):
            group.apply(None)
            del self._groups[group_id]

    def _apply_consumer(self, group_id: str, record: GroupRecord) -> None:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            # A tombstone may be for a group that is removed already or was replaced by a classic group.
            if record.value is None:
                return
            group = self._groups[group_id] = self.new_consumer(group_id)
        group.apply(record)
        if isinstance(record.key, ConsumerGroupMetadataKey) and record.value is None:
            del self._groups[group_id]
