"""Committed offsets of the groups of one machine, and offsets that wait for the end of a transaction.

A pure state machine. Only `apply` and `end_transaction` change it. Everything else reads, or returns the
records that would change it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

from barnabas.coordination.step import JournalRecord
from barnabas.groups.record_schemas import OffsetCommitKey, OffsetCommitValue
from barnabas.groups.records import GroupRecord, encode, tombstone
from barnabas.ids import ZERO_UUID, TopicPartition, Uuid

_T = TypeVar("_T")

NO_EXPIRY = -1


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = 0
    # Old clients may choose it. With NO_EXPIRY the group and offsets.retention.minutes decide.
    expire_ms: int = NO_EXPIRY
    topic_id: Uuid = ZERO_UUID

    def is_of_topic(self, topic_id: Uuid) -> bool:
        """False if both topic ids are known and differ: then the name belongs to a new topic."""
        return ZERO_UUID in (topic_id, self.topic_id) or topic_id == self.topic_id


class _Stored(NamedTuple):
    committed: CommittedOffset
    # The number of earlier records. It decides whether a transaction's offset is newer than another one.
    position: int


_Offsets: TypeAlias = dict[TopicPartition, _Stored]


class OffsetStore:
    def __init__(self) -> None:
        self._committed: dict[str, _Offsets] = {}
        # By producer id, then by group: offsets of its open transaction.
        self._pending: dict[int, dict[str, _Offsets]] = {}
        # By group: the producers that have an open transaction with an offset of each partition.
        self._open: dict[str, dict[TopicPartition, set[int]]] = {}
        self._position = 0

    # Reading

    def get(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        stored = self._committed.get(group_id, {}).get(partition)
        return None if stored is None else stored.committed

    def of_group(self, group_id: str) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        for partition, stored in self._committed.get(group_id, {}).items():
            yield partition, stored.committed

    def group_ids(self) -> set[str]:
        """Groups that have offsets, committed or pending."""
        return self._committed.keys() | self._open.keys()

    def has_group(self, group_id: str) -> bool:
        return group_id in self._committed or group_id in self._open

    def is_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether an open transaction has an offset of the partition."""
        return partition in self._open.get(group_id, ())

    def has_open_transactions(self, group_id: str) -> bool:
        return group_id in self._open

    # Deciding: records that remove

    def removal(self, group_id: str, partition: TopicPartition) -> list[JournalRecord]:
        """A tombstone if there is an offset to remove, committed or pending."""
        known = partition in self._committed.get(group_id, ()) or self.is_pending(group_id, partition)
        return [offset_tombstone(group_id, partition)] if known else []

    def removal_of_group(self, group_id: str) -> list[JournalRecord]:
        return [offset_tombstone(group_id, partition) for partition in self._partitions(group_id)]

    def removal_of_topics(self, group_ids: Iterable[str], topics: Mapping[str, Uuid]) -> list[JournalRecord]:
        """For topics that were deleted, with their ids. Offsets of a new topic with the same name are
        kept."""
        return [
            offset_tombstone(group_id, partition)
            for group_id in group_ids
            for partition in self._partitions(group_id)
            if partition.topic in topics and self._is_of_topic(group_id, partition, topics[partition.topic])
        ]

    def removal_of_old_topics(
        self, group_ids: Iterable[str], topic_id: Callable[[str], Uuid | None]
    ) -> list[JournalRecord]:
        """For topics that do not exist any more, also if there is a new one with the same name."""
        return [
            offset_tombstone(group_id, partition)
            for group_id in group_ids
            for partition, committed in self.of_group(group_id)
            if committed.topic_id not in (ZERO_UUID, topic_id(partition.topic))
        ]

    def _partitions(self, group_id: str) -> list[TopicPartition]:
        partitions = dict.fromkeys(self._committed.get(group_id, ()))
        partitions.update(dict.fromkeys(self._open.get(group_id, ())))
        return list(partitions)

    def _is_of_topic(self, group_id: str, partition: TopicPartition, topic_id: Uuid) -> bool:
        committed = self.get(group_id, partition)
        return committed is None or committed.is_of_topic(topic_id)

    # Applying

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int | None) -> None:
        partition = TopicPartition(key.topic, key.partition)
        if value is None:
            self._remove(key.group, partition)
            return
        self._position += 1
        stored = _Stored(_from_record(value), self._position)
        if producer_id is None:
            self._committed.setdefault(key.group, {})[partition] = stored
        else:
            self._pending.setdefault(producer_id, {}).setdefault(key.group, {})[partition] = stored
            self._open.setdefault(key.group, {}).setdefault(partition, set()).add(producer_id)

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        for group_id, offsets in self._pending.pop(producer_id, {}).items():
            for partition, stored in offsets.items():
                self._close(group_id, partition, producer_id)
                if is_commit:
                    self._keep_newer(group_id, partition, stored)

    def _keep_newer(self, group_id: str, partition: TopicPartition, stored: _Stored) -> None:
        # A later commit outside the transaction wins: compaction may keep only that one, and a replay must
        # give the same result.
        committed = self._committed.setdefault(group_id, {})
        existing = committed.get(partition)
        if existing is None or existing.position < stored.position:
            committed[partition] = stored

    def _remove(self, group_id: str, partition: TopicPartition) -> None:
        """Remove the committed offset of a partition, and those of open transactions."""
        for producer_id in list(self._open.get(group_id, {}).get(partition, ())):
            self._close(group_id, partition, producer_id)
            groups = self._pending[producer_id]
            _discard(groups, group_id, partition)
            if not groups:
                del self._pending[producer_id]
        _discard(self._committed, group_id, partition)

    def _close(self, group_id: str, partition: TopicPartition, producer_id: int) -> None:
        producers = self._open[group_id][partition]
        producers.discard(producer_id)
        if not producers:
            _discard(self._open, group_id, partition)

    def durable_state(self) -> tuple[object, object]:
        """What a replay must give again: committed offsets, and pending ones by producer."""
        committed = {group_id: dict(self.of_group(group_id)) for group_id in self._committed}
        pending = {
            (producer_id, group_id, partition): stored.committed
            for producer_id, groups in self._pending.items()
            for group_id, offsets in groups.items()
            for partition, stored in offsets.items()
        }
        return committed, pending


def offset_record(group_id: str, partition: TopicPartition, committed: CommittedOffset) -> JournalRecord:
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_ms,
        expire_timestamp=committed.expire_ms,
        topic_id=committed.topic_id,
    )
    return encode(GroupRecord(_key(group_id, partition), value))


def offset_tombstone(group_id: str, partition: TopicPartition) -> JournalRecord:
    return tombstone(_key(group_id, partition))


def _key(group_id: str, partition: TopicPartition) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)


def _from_record(value: OffsetCommitValue) -> CommittedOffset:
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
    )


def _discard(groups: dict[str, dict[TopicPartition, _T]], group_id: str, partition: TopicPartition) -> None:
    """Remove one entry, and the group's dict with the last one."""
    entries = groups.get(group_id)
    if entries is None:
        return
    entries.pop(partition, None)
    if not entries:
        del groups[group_id]
