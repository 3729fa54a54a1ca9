"""The durable state of a consumer group: exactly what its records say.

Only `apply` changes it, live and in a replay. Compaction may remove any older records and keeps the order of
the rest, so a record never depends on another one."""

from typing import cast

from barnabas.groups import record_schemas as schemas
from barnabas.groups.assignors import NOTHING, Assignment
from barnabas.groups.consumer.members import (
    Member,
    assignment_of,
    member_tombstones,
    with_current,
    with_metadata,
)
from barnabas.groups.consumer.subscriptions import ResolvedRegex, regex_record
from barnabas.groups.records import GroupRecord
from barnabas.ids import Uuid


class ConsumerState:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        # Rises with every change of members, subscriptions or subscribed topics.
        self.epoch = 0
        # The group epoch of the current target. It is lower than `epoch` while a new target is needed.
        self.target_epoch = 0
        self.metadata_hash = 0
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Assignment] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        # Topics have changed, and only a request of a member can tell which of them it may see.
        self.must_resolve = False
        # Member ids by instance id.
        self.instances: dict[str, str] = {}
        # Kafka up to 4.0 stored the subscribed topics in a separate record, which must be removed.
        self.has_partition_metadata = False
        self.is_deleted = False
        # The member that has a partition or has not revoked it yet.
        self._owners: dict[tuple[Uuid, int], str] = {}

    # ---- questions

    def static_member(self, instance_id: str) -> Member | None:
        member_id = self.instances.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def share(self, member: Member) -> Assignment:
        """A member's part of the target. A member that takes over an instance id takes over its part, too."""
        if member.instance_id is not None and member.instance_id in self.instances:
            return self.targets.get(self.instances[member.instance_id], NOTHING)
        return self.targets.get(member.member_id, NOTHING)

    def is_free(self, topic: Uuid, partition: int) -> bool:
        return (topic, partition) not in self._owners

    def tombstones(self) -> list[GroupRecord]:
        """The records that remove the group."""
        tombstones = [
            record for member_id in self.members for record in member_tombstones(self.group_id, member_id)
        ]
        tombstones += [regex_record(self.group_id, expression, None) for expression in self.regexes]
        keys: list[schemas.ConsumerGroupTargetAssignmentMetadataKey | schemas.ConsumerGroupMetadataKey] = [
            schemas.ConsumerGroupTargetAssignmentMetadataKey(group_id=self.group_id),
            schemas.ConsumerGroupMetadataKey(group_id=self.group_id),
        ]
        if self.has_partition_metadata:
            tombstones.append(partition_metadata_tombstone(self.group_id))
        return tombstones + [GroupRecord(key, None) for key in keys]

    # ---- records

    def apply(self, record: GroupRecord) -> None:
        key, value = record
        match key:
            case schemas.ConsumerGroupMetadataKey():
                self._apply_epoch(cast(schemas.ConsumerGroupMetadataValue | None, value))
            case schemas.ConsumerGroupPartitionMetadataKey():
                self.has_partition_metadata = value is not None
            case schemas.ConsumerGroupMemberMetadataKey():
                self._apply_member(
                    key.member_id, cast(schemas.ConsumerGroupMemberMetadataValue | None, value)
                )
            case schemas.ConsumerGroupTargetAssignmentMetadataKey():
                target = cast(schemas.ConsumerGroupTargetAssignmentMetadataValue | None, value)
                self.target_epoch = 0 if target is None else target.assignment_epoch
            case schemas.ConsumerGroupTargetAssignmentMemberKey():
                self._apply_target(
                    key.member_id, cast(schemas.ConsumerGroupTargetAssignmentMemberValue | None, value)
                )
            case schemas.ConsumerGroupCurrentMemberAssignmentKey():
                self._apply_current(
                    key.member_id, cast(schemas.ConsumerGroupCurrentMemberAssignmentValue | None, value)
                )
            case schemas.ConsumerGroupRegularExpressionKey():
                self._apply_regex(
                    key.regular_expression, cast(schemas.ConsumerGroupRegularExpressionValue | None, value)
                )
            case _:
                raise TypeError(f"a {type(key).__name__} is not a record of a consumer group")

    def _apply_epoch(self, value: schemas.ConsumerGroupMetadataValue | None) -> None:
        self.is_deleted = value is None
        self.epoch = 0 if value is None else value.epoch
        self.metadata_hash = 0 if value is None else value.metadata_hash

    def _apply_member(self, member_id: str, value: schemas.ConsumerGroupMemberMetadataValue | None) -> None:
        old = self.members.get(member_id, Member(member_id))
        if old.instance_id is not None and self.instances.get(old.instance_id) == member_id:
            del self.instances[old.instance_id]
        if value is None:
            self._release(old)
            self.members.pop(member_id, None)
            return
        self.members[member_id] = with_metadata(old, value)
        if value.instance_id is not None:
            self.instances[value.instance_id] = member_id

    def _apply_target(
        self, member_id: str, value: schemas.ConsumerGroupTargetAssignmentMemberValue | None
    ) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = assignment_of(value.topic_partitions)

    def _apply_current(
        self, member_id: str, value: schemas.ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        old = self.members.get(member_id)
        if value is None and old is None:
            return
        old = old or Member(member_id)
        self._release(old)
        member = self.members[member_id] = with_current(old, value)
        for assignment in (member.assigned, member.revoking):
            for topic, partitions in assignment.items():
                self._owners.update(((topic, partition), member_id) for partition in partitions)

    def _apply_regex(
        self, expression: str, value: schemas.ConsumerGroupRegularExpressionValue | None
    ) -> None:
        if value is None:
            self.regexes.pop(expression, None)
        else:
            self.regexes[expression] = ResolvedRegex(frozenset(value.topics), value.timestamp)

    def _release(self, member: Member) -> None:
        for assignment in (member.assigned, member.revoking):
            for topic, partitions in assignment.items():
                for partition in partitions:
                    # Compaction may have removed the record in which the partition went to another member.
                    if self._owners.get((topic, partition)) == member.member_id:
                        del self._owners[topic, partition]


# ---- records of the group itself


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    value = schemas.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return GroupRecord(schemas.ConsumerGroupMetadataKey(group_id=group_id), value)


def partition_metadata_tombstone(group_id: str) -> GroupRecord:
    return GroupRecord(schemas.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)
