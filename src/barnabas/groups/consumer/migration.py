"""Converts a group with members from the classic to the consumer protocol and back. Pure.

Upgrade: the first member of the consumer protocol turns a classic group of consumers into a consumer group.
The classic members stay, keep their partitions, and are told to join again.

Downgrade: when only classic members are left, the group becomes a classic one. A timer (DOWNGRADE) starts
this as a separate step. A second timer (DOWNGRADED) makes the classic group begin a rebalance. If the broker
dies in between, the record without a leader has the same effect."""

from collections.abc import Collection, Iterable

from barnabas.coordination.step import JournalRecord
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.group import Export, downgrade_record
from barnabas.groups.classic.members import ClientInfo, Protocol
from barnabas.groups.classic.members import Member as ClassicMember
from barnabas.groups.classic.protocol import (
    by_topic_id,
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from barnabas.groups.classic.records import CONSUMER, group_tombstone
from barnabas.groups.consumer.members import (
    ClassicDetails,
    Member,
    current_record,
    metadata_record,
    target_record,
)
from barnabas.groups.consumer.state import ConsumerState, epoch_record
from barnabas.groups.consumer.subscriptions import metadata_hash
from barnabas.groups.consumer.target_assignment import target_epoch_record
from barnabas.groups.records import GroupRecord, encode
from barnabas.groups.settings import GroupSettings, TopicsView
from barnabas.wire.codec import WireError

# Timers of the whole group. On DOWNGRADE the consumer group writes itself as a classic one; DOWNGRADED
# is for the classic group that this made: all its members must join again.
DOWNGRADE = "downgrade"
DOWNGRADED = "downgraded"


# ---- downgrade


def is_downgradable(members: Collection[Member], settings: GroupSettings) -> bool:
    return (
        settings.migration_policy in ("bidirectional", "downgrade")
        and 0 < len(members) <= settings.max_size
        and all(member.classic is not None for member in members)
    )


def downgrade_records(state: ConsumerState, topics: TopicsView, now_ms: int) -> list[JournalRecord]:
    """Records that remove the consumer group and create the classic group that continues it.

    The generation is the epoch of the members. The group's epoch may be newer, because a member has just
    left; with that one the members could not commit what they have read before they join again."""
    members = [_as_classic(member, topics) for member in state.members.values()]
    gone = [encode(record) for record in state.tombstones()]
    return [*gone, downgrade_record(state.group_id, state.target_epoch, members, now_ms)]


def _as_classic(member: Member, topics: TopicsView) -> ClassicMember:
    assert member.classic is not None
    protocols = member.classic.protocols
    version = version_of(protocols[0][1])
    return ClassicMember(
        id=member.member_id,
        instance_id=member.instance_id,
        client=ClientInfo(member.client_id, member.client_host),
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=tuple(Protocol(name, metadata) for name, metadata in protocols),
        assignment=write_assignment(member.assigned, version, topics),
    )


# ---- upgrade


def upgrade_records(
    group_id: str, export: Export, settings: GroupSettings, topics: TopicsView, now_ms: int
) -> list[JournalRecord]:
    """Records that remove the classic group and create the consumer group that continues it.

    Raises GROUP_ID_NOT_FOUND if the group cannot be converted: for the new member there is no such group."""
    _check_upgrade(group_id, export, settings)
    try:
        members = [_as_consumer(member, export, topics) for member in export.members]
    except WireError as error:
        raise _refused(group_id, f"cannot read a member's subscription or assignment: {error}") from error
    gone = group_tombstone(group_id)
    return [gone, *(encode(record) for record in _group_records(group_id, export, members, topics, now_ms))]


def _check_upgrade(group_id: str, export: Export, settings: GroupSettings) -> None:
    if settings.migration_policy not in ("bidirectional", "upgrade"):
        raise _refused(group_id, "group.consumer.migration.policy does not allow upgrades")
    if export.members and export.generation.protocol_type != CONSUMER:
        raise _refused(group_id, "its members are not consumers")
    if len(export.members) > settings.consumer_max_size:
        raise _refused(group_id, "it has more members than group.consumer.max.size")


def _refused(group_id: str, why: str) -> KafkaError:
    message = f"group {group_id} is a classic group and cannot become a consumer group: {why}"
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _as_consumer(member: ClassicMember, export: Export, topics: TopicsView) -> Member:
    generation = export.generation
    subscription = read_subscription(member.metadata(generation.protocol_name))
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise WireError("the assignment has data of a custom assignor, which would be lost")
    return Member(
        member.id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client.id,
        client_host=member.client.host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topic_names=frozenset(subscription.topics),
        classic=ClassicDetails(
            member.session_timeout_ms, tuple((each.name, each.metadata) for each in member.protocols)
        ),
        epoch=generation.number,
        previous_epoch=generation.number,
        assigned=by_topic_id(assignment.assigned_partitions, topics),
    )


def _group_records(
    group_id: str, export: Export, members: list[Member], topics: TopicsView, now_ms: int
) -> Iterable[GroupRecord]:
    names = frozenset[str]().union(*(member.topic_names for member in members))
    epoch = export.generation.number
    yield from (metadata_record(group_id, member) for member in members)
    yield epoch_record(group_id, epoch, metadata_hash(names, topics))
    yield from (target_record(group_id, member.member_id, member.assigned) for member in members)
    yield target_epoch_record(group_id, epoch, now_ms)
    yield from (current_record(group_id, member) for member in members)
