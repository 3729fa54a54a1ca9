"""A member of a consumer group, and its two records. A member is a value: a change makes a new one.

What a member said about itself (names, subscription) is in its metadata record. Its epoch and partitions are
in its current assignment record."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Protocol

from barnabas.groups import record_schemas as schemas
from barnabas.groups.assignors import NOTHING, Assignment
from barnabas.groups.records import GroupRecord
from barnabas.ids import Uuid

# Epochs with a special meaning in a heartbeat.
JOIN_EPOCH = 0
LEAVE_EPOCH = -1
# A static member leaves and will come back: its partitions are kept for the next member with its instance id.
STATIC_LEAVE_EPOCH = -2


class MemberState(IntEnum):
    """How far a member is on the way to its target assignment."""

    STABLE = 0
    # It must revoke partitions, and has not confirmed that.
    UNREVOKED_PARTITIONS = 1
    # It waits for partitions that other members have not revoked yet.
    UNRELEASED_PARTITIONS = 2
    # Written by a version of Kafka that knows more states.
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ClassicDetails:
    """What is stored for a member that uses the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Member:
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = None
    classic: ClassicDetails | None = None

    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assignment = field(default_factory=dict)
    revoking: Assignment = field(default_factory=dict)
    # The epoch at which it got each of its partitions; if a partition is missing here, its current epoch.
    since: Mapping[Uuid, Mapping[int, int]] = field(default_factory=dict)

    def held_since(self, topic: Uuid, partition: int) -> int | None:
        """The epoch at which the member got a partition; None if it neither has it nor must revoke it."""
        if not (holds(self.assigned, topic, partition) or holds(self.revoking, topic, partition)):
            return None
        return self.since.get(topic, {}).get(partition, self.epoch)

    @property
    def has_left_for_a_while(self) -> bool:
        return self.epoch == STATIC_LEAVE_EPOCH

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def moved_to(
        self, epoch: int, state: MemberState, assigned: Assignment, revoking: Assignment
    ) -> "Member":
        return replace(
            self,
            epoch=epoch,
            previous_epoch=self.epoch,
            state=state,
            assigned=assigned,
            revoking=revoking,
            since=self._since_after(epoch, assigned, revoking),
        )

    def _since_after(
        self, epoch: int, assigned: Assignment, revoking: Assignment
    ) -> dict[Uuid, dict[int, int]]:
        since: dict[Uuid, dict[int, int]] = {}
        for assignment in (assigned, revoking):
            for topic, partitions in assignment.items():
                for partition in partitions:
                    before = self.held_since(topic, partition)
                    since.setdefault(topic, {})[partition] = epoch if before is None else before
        return since


class _TopicPartitions(Protocol):
    """How requests and records list partitions."""

    topic_id: bytes
    partitions: list[int]


def assignment_of(listed: Iterable[_TopicPartitions]) -> Assignment:
    assignment: dict[Uuid, frozenset[int]] = {}
    for each in listed:
        if each.partitions:
            known = assignment.get(each.topic_id, frozenset())
            assignment[each.topic_id] = known | frozenset(each.partitions)
    return assignment


def holds(assignment: Assignment, topic: Uuid, partition: int) -> bool:
    return partition in assignment.get(topic, ())


def overlap(one: Assignment, other: Assignment) -> bool:
    return any(partitions & other.get(topic, frozenset()) for topic, partitions in one.items())


def is_within(one: Assignment, other: Assignment) -> bool:
    return all(partitions <= other.get(topic, frozenset()) for topic, partitions in one.items())


# ---- records


def metadata_record(group_id: str, member: Member) -> GroupRecord:
    classic = None
    if member.classic is not None:
        protocols = [schemas.ClassicProtocol(name=n, metadata=m) for n, m in member.classic.protocols]
        classic = schemas.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms, supported_protocols=protocols
        )
    value = schemas.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )
    return GroupRecord(_metadata_key(group_id, member.member_id), value)


def with_metadata(member: Member, value: schemas.ConsumerGroupMemberMetadataValue) -> Member:
    classic = None
    if value.classic_member_metadata is not None:
        kept = value.classic_member_metadata
        protocols = tuple((each.name, bytes(each.metadata)) for each in kept.supported_protocols)
        classic = ClassicDetails(kept.session_timeout_ms, protocols)
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        topic_names=frozenset(value.subscribed_topic_names),
        topic_regex=value.subscribed_topic_regex,
        classic=classic,
    )


def current_record(group_id: str, member: Member) -> GroupRecord:
    value = schemas.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=int(member.state),
        assigned_partitions=_listed(member.assigned, member),
        partitions_pending_revocation=_listed(member.revoking, member),
    )
    return GroupRecord(_current_key(group_id, member.member_id), value)


def with_current(member: Member, value: schemas.ConsumerGroupCurrentMemberAssignmentValue | None) -> Member:
    if value is None:
        return replace(
            member,
            epoch=LEAVE_EPOCH,
            previous_epoch=LEAVE_EPOCH,
            state=MemberState.STABLE,
            assigned=NOTHING,
            revoking=NOTHING,
            since={},
        )
    known = value.state in MemberState.__members__.values()
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned=assignment_of(value.assigned_partitions),
        revoking=assignment_of(value.partitions_pending_revocation),
        since=_since_of([*value.assigned_partitions, *value.partitions_pending_revocation]),
    )


def _since_of(listed: Iterable[schemas.CurrentTopicPartitions]) -> dict[Uuid, dict[int, int]]:
    """Records of Kafka before 4.3 do not have these epochs."""
    since: dict[Uuid, dict[int, int]] = {}
    for each in listed:
        if each.assignment_epochs is not None and len(each.assignment_epochs) == len(each.partitions):
            since.setdefault(each.topic_id, {}).update(
                zip(each.partitions, each.assignment_epochs, strict=True)
            )
    return since


def target_record(group_id: str, member_id: str, target: Assignment) -> GroupRecord:
    listed = [
        schemas.TargetTopicPartitions(topic_id=topic, partitions=sorted(partitions))
        for topic, partitions in sorted(target.items())
    ]
    value = schemas.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=listed)
    return GroupRecord(_target_key(group_id, member_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """The records that remove a member: its partitions first, then the member."""
    return [
        GroupRecord(_current_key(group_id, member_id), None),
        GroupRecord(_target_key(group_id, member_id), None),
        GroupRecord(_metadata_key(group_id, member_id), None),
    ]


def _metadata_key(group_id: str, member_id: str) -> schemas.ConsumerGroupMemberMetadataKey:
    return schemas.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def _current_key(group_id: str, member_id: str) -> schemas.ConsumerGroupCurrentMemberAssignmentKey:
    return schemas.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)


def _target_key(group_id: str, member_id: str) -> schemas.ConsumerGroupTargetAssignmentMemberKey:
    return schemas.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)


def _listed(assignment: Assignment, holder: Member) -> list[schemas.CurrentTopicPartitions]:
    return [
        schemas.CurrentTopicPartitions(
            topic_id=topic,
            partitions=sorted(partitions),
            assignment_epochs=[
                holder.since.get(topic, {}).get(number, holder.epoch) for number in sorted(partitions)
            ],
        )
        for topic, partitions in sorted(assignment.items())
    ]
