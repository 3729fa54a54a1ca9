"""All groups of one partition of `__consumer_offsets`: one method per API, for groups of both protocols.

The machine finds the group, creates it or converts it. Everything else is done by the group (classic/,
consumer/) or for its offsets (offset_calls). The caller checks whether topics exist and whether the client is
authorized. Errors are part of the answers."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

from barnabas.coordination.step import JournalRecord, Producer, Step, Waiter, merged
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.answers import join_refused, sync_refused
from barnabas.groups.classic.group import ClassicGroup, Export
from barnabas.groups.classic.members import ClientInfo, chosen_protocol
from barnabas.groups.classic.plan import JOIN, PENDING, SESSION, SYNC
from barnabas.groups.consumer.changes import REBALANCE
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.members import JOIN_EPOCH
from barnabas.groups.consumer.migration import DOWNGRADE, DOWNGRADED
from barnabas.groups.consumer.requests import check_heartbeat
from barnabas.groups.directory import GroupDirectory
from barnabas.groups.offset_calls import OffsetCalls
from barnabas.groups.queries import described_classic, described_consumer, listed
from barnabas.groups.settings import GroupSettings, TopicsView
from barnabas.ids import Uuid
from barnabas.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.wire.messages.delete_groups import DeletableGroupResult
from barnabas.wire.messages.describe_groups import DescribedGroup
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from barnabas.wire.messages.list_groups import ListedGroup
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

__all__ = ["ClientInfo", "GroupMachine"]

_Reply = TypeVar("_Reply")

# The timers of each kind of group, and whether a timer belongs to a member (True) or to the group.
_TIMERS: Mapping[type, frozenset[tuple[str, bool]]] = {
    ClassicGroup: frozenset({(SESSION, True), (PENDING, True), (JOIN, False), (SYNC, False)}),
    ConsumerGroup: frozenset(
        {(SESSION, True), (REBALANCE, True), (JOIN, True), (SYNC, True), (DOWNGRADE, False)}
    ),
}


class GroupMachine:
    def __init__(self, settings: GroupSettings, topics: TopicsView) -> None:
        self._settings = settings
        self._topics = topics
        # For reading only.
        self.groups = GroupDirectory(settings, topics)
        self._offsets = OffsetCalls(self.groups, settings, topics)

    # ---- members of the classic protocol

    def join_group(
        self, request: JoinGroupRequest, client: ClientInfo, version: int, waiter: Waiter, now_ms: int
    ) -> Step[JoinGroupResponse]:
        group_id = request.group_id
        self.groups.replace_empty_consumer_group(group_id)
        try:
            step = self._joined(request, client, version, waiter, now_ms)
        except KafkaError as error:
            step = Step(join_refused(error.code, request.member_id, version))
        self.groups.drop_if_unused(group_id)
        return self._with_tombstones_of_replaced(group_id, step)

    def _joined(
        self, request: JoinGroupRequest, client: ClientInfo, version: int, waiter: Waiter, now_ms: int
    ) -> Step[JoinGroupResponse]:
        _check_id(request.group_id)
        self._settings.check_session_timeout(request.session_timeout_ms)
        group = self.groups.find(request.group_id)
        sizes = [len(protocol.metadata) for protocol in request.protocols]
        if isinstance(group, ConsumerGroup):
            self._settings.check_record(sum(sizes))
            return group.join(request, client, version, now_ms)
        # The record of a classic group has the metadata of the protocol that is chosen.
        self._settings.check_record(max(sizes, default=0))
        if group is None and request.member_id:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return self.groups.classic(request.group_id).join(request, client, version, waiter, now_ms)

    def sync_group(
        self, request: SyncGroupRequest, version: int, waiter: Waiter, now_ms: int
    ) -> Step[SyncGroupResponse]:
        try:
            _check_id(request.group_id)
            group = self._existing(request.group_id)
            if isinstance(group, ConsumerGroup):
                return group.sync(request, now_ms)
            return self._with_tombstones_of_replaced(
                request.group_id, group.sync(request, waiter, version, now_ms)
            )
        except KafkaError as error:
            return Step(sync_refused(error.code))

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Step[HeartbeatResponse]:
        try:
            _check_id(request.group_id)
            group = self._existing(request.group_id)
            if isinstance(group, ConsumerGroup):
                return group.classic_heartbeat(request, now_ms)
            return group.heartbeat(request, now_ms)
        except KafkaError as error:
            return Step(HeartbeatResponse(error_code=error.code))

    def leave_group(self, request: LeaveGroupRequest, version: int, now_ms: int) -> Step[LeaveGroupResponse]:
        group_id = request.group_id
        group = self.groups.find(group_id)
        if not group_id:
            return Step(LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        if group is None:
            return Step(_nobody_left(request))
        if isinstance(group, ConsumerGroup):
            return group.leave(request, now_ms)
        step = group.leave(request, version, now_ms)
        self.groups.drop_if_unused(group_id)
        return self._with_tombstones_of_replaced(group_id, step)

    def _existing(self, group_id: str) -> ClassicGroup | ConsumerGroup:
        """UNKNOWN_MEMBER_ID if there is no such group: its members have to join again."""
        group = self.groups.find(group_id)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group

    # ---- members of the consumer protocol

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: ClientInfo, version: int, now_ms: int
    ) -> Step[ConsumerGroupHeartbeatResponse]:
        group_id = request.group_id
        self.groups.drop_if_unused(group_id)
        try:
            group = self.groups.find(group_id)
            if not isinstance(group, ConsumerGroup) and request.member_epoch != JOIN_EPOCH:
                check_heartbeat(request, version, self._settings)
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {group_id!r}")
            if isinstance(group, ClassicGroup):
                return self._with_tombstones_of_replaced(
                    group_id, self._upgraded(group, request, client, version, now_ms)
                )
            group = group or self.groups.new_consumer(group_id)
            return group.heartbeat(request, client, version, now_ms)
        except KafkaError as error:
            return Step(ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message))

    def _upgraded(
        self,
        group: ClassicGroup,
        request: ConsumerGroupHeartbeatRequest,
        client: ClientInfo,
        version: int,
        now_ms: int,
    ) -> Step[ConsumerGroupHeartbeatResponse]:
        """Convert a classic group into a consumer group with the same members, in one batch of records."""
        refusals = group.refuse_waiting(ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
        if group.is_empty:
            new = self.groups.new_consumer(group.group_id)
            change: Step[None] = Step(None, group.tombstones())
        else:
            export = _with_common_protocol(group.export())
            new, change = ConsumerGroup.upgraded(group.group_id, export, self._settings, self._topics, now_ms)
        heartbeat = new.heartbeat(request, client, version, now_ms)
        return merged(heartbeat.reply, [refusals, change, heartbeat])

    # ---- offsets

    def offset_commit(
        self, request: OffsetCommitRequest, version: int, now_ms: int
    ) -> Step[OffsetCommitResponse]:
        return self._offsets.commit(request, version, now_ms)

    def txn_offset_commit(
        self, request: TxnOffsetCommitRequest, version: int, now_ms: int
    ) -> Step[TxnOffsetCommitResponse]:
        return self._offsets.commit_in_transaction(request, version, now_ms)

    def offset_fetch(
        self, request: OffsetFetchRequestGroup, require_stable: bool
    ) -> Step[OffsetFetchResponseGroup]:
        return self._offsets.fetch(request, require_stable)

    def offset_delete(self, request: OffsetDeleteRequest) -> Step[OffsetDeleteResponse]:
        return self._offsets.delete(request)

    def expire_offsets(self, group_ids: Iterable[str], now_ms: int) -> Step[bool]:
        """Remove expired offsets of these groups. Call this again while the reply is True."""
        return self._offsets.expire(group_ids, now_ms)

    # ---- groups as a whole

    def describe_group(self, group_id: str, version: int) -> Step[DescribedGroup]:
        return Step(described_classic(self.groups.find(group_id), group_id, version))

    def describe_consumer_group(self, group_id: str) -> Step[DescribedConsumerGroup]:
        return Step(described_consumer(self.groups.find(group_id), group_id))

    def list_groups(
        self, states: Collection[str] = (), types: Collection[str] = ()
    ) -> Step[list[ListedGroup]]:
        return Step(listed(self.groups, states, types))

    def delete_group(self, group_id: str, now_ms: int) -> Step[DeletableGroupResult]:
        group = self.groups.find(group_id)
        result = DeletableGroupResult(group_id=group_id)
        try:
            if group is None:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
            group.check_delete()
        except KafkaError as error:
            result.error_code = error.code
            return Step(result)
        records = self.groups.offsets.removal_of_group(group_id) + self.groups.tombstones(group)
        steps: list[Step[None]] = [Step(None, records)]
        if isinstance(group, ClassicGroup):
            # A member id may have been given out, which has a timer.
            steps.append(group.refuse_waiting(ErrorCode.UNKNOWN_MEMBER_ID, now_ms))
        return merged(result, steps)

    # ---- topics

    def topics_changed(self, now_ms: int) -> Step[None]:
        """Topics were created or got partitions. Members of classic groups notice that themselves."""
        consumers = [group for group in self.groups if isinstance(group, ConsumerGroup)]
        return merged(None, [group.topics_changed(now_ms) for group in consumers])

    def topics_deleted(self, group_ids: Iterable[str], topics: Mapping[str, Uuid]) -> Step[bool]:
        """Remove the offsets that these groups have of deleted topics, which are given with their ids.

        Call this again while the reply is True."""
        return self._offsets.remove_topics(group_ids, topics)

    def remove_old_topics(self, group_ids: Iterable[str]) -> Step[bool]:
        """Remove the offsets that these groups have of topics that were deleted while no broker coordinated
        the groups. Call this again while the reply is True."""
        return self._offsets.remove_old_topics(group_ids)

    # ---- the journal and time

    def apply(self, record: JournalRecord, producer: Producer | None) -> None:
        self.groups.apply(record, producer)

    def apply_marker(self, producer: Producer, is_commit: bool) -> None:
        self.groups.offsets.end_transaction(producer.id, is_commit)

    def loaded(self, now_ms: int) -> Step[None]:
        self.groups.add_groups_of_offsets()
        return merged(None, [group.loaded(now_ms) for group in self.groups])

    def lapse(self, key: Hashable, now_ms: int) -> Step[None]:
        """A timer of a group ran out. The group may have been converted or removed since it was set."""
        if not (isinstance(key, tuple) and len(key) in (3, 4) and key[0] == "group"):
            raise ValueError(f"{key!r} is not the key of a group's timer")
        group_id, timer = key[1], (key[2], len(key) == 4)
        group = self.groups.find(group_id)
        if isinstance(group, ClassicGroup) and timer == (DOWNGRADED, False):
            return group.rebalance(now_ms)
        if group is None or timer not in _TIMERS[type(group)]:
            return Step(None)
        step = group.lapse(key, now_ms)
        self.groups.drop_if_unused(group_id)
        return self._with_tombstones_of_replaced(group_id, step)

    def moved_away(self, now_ms: int) -> Step[None]:
        """This broker no longer coordinates these groups: refuse all parked calls."""
        classic = [group for group in self.groups if isinstance(group, ClassicGroup)]
        return merged(None, [group.refuse_waiting(ErrorCode.NOT_COORDINATOR, now_ms) for group in classic])

    def _with_tombstones_of_replaced(self, group_id: str, step: Step[_Reply]) -> Step[_Reply]:
        if step.records:
            step.records = self.groups.tombstones_of_replaced(group_id) + step.records
        return step


def _with_common_protocol(export: Export) -> Export:
    """Take a protocol that all members support now: during a rebalance the group has none or an old one."""
    protocol_name = chosen_protocol(export.members)
    return export._replace(generation=export.generation._replace(protocol_name=protocol_name))


def _check_id(group_id: str) -> None:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)


def _nobody_left(request: LeaveGroupRequest) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=ErrorCode.UNKNOWN_MEMBER_ID,
            )
            for member in request.members
        ]
    )
