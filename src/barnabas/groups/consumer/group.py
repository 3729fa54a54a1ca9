"""A consumer group of KIP-848: the coordinator assigns partitions, and members take them over step by step.

Rule 1: everything that changes a group is called through this module. Rule 2: no I/O, clock or asyncio here.
Rule 3: decisions return a Step, and only `apply` changes durable state.

state              what the records say
changes            what a request changes
target_assignment  which member should have which partitions
reconciliation     how members get there
classic_members    members that use the classic protocol
migration          conversion from and to a classic group

EMPTY       no members                    RECONCILING  members have not reached the target yet
ASSIGNING   a new target is needed        STABLE       all members have their target
DEAD        the group was removed

Errors for clients are raised as KafkaError; then nothing is written."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from enum import Enum

from barnabas.config.group import GroupConfig
from barnabas.coordination.step import JournalRecord, Step
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.group import Export
from barnabas.groups.classic.members import ClientInfo
from barnabas.groups.classic.plan import JOIN, SESSION, SYNC, Plan
from barnabas.groups.classic.records import CONSUMER
from barnabas.groups.consumer.changes import REBALANCE, Changes, Departures
from barnabas.groups.consumer.classic_members import ClassicMembers
from barnabas.groups.consumer.describe import described
from barnabas.groups.consumer.members import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    Member,
    MemberState,
    current_record,
)
from barnabas.groups.consumer.migration import (
    DOWNGRADE,
    DOWNGRADED,
    downgrade_records,
    is_downgradable,
    upgrade_records,
)
from barnabas.groups.consumer.requests import (
    check_epoch,
    check_heartbeat,
    is_full,
    is_leave,
    owned_partitions,
    updated_member,
)
from barnabas.groups.consumer.state import ConsumerState
from barnabas.groups.consumer.statics import check_released, known_member, replacement
from barnabas.groups.consumer.subscriptions import topics_of_all
from barnabas.groups.group import Committer
from barnabas.groups.record_schemas import GroupMetadataKey
from barnabas.groups.records import GroupRecord, decode, encode
from barnabas.groups.settings import GroupSettings, TopicsView
from barnabas.ids import random_uuid, uuid_to_string
from barnabas.wire.messages.consumer_group_describe import DescribedGroup
from barnabas.wire.messages.consumer_group_heartbeat import (
    Assignment as WireAssignment,
)
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

# Members of the consumer protocol commit with their epoch, which older versions cannot carry.
_COMMIT_WITH_EPOCH = 9


class State(Enum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


def _new_member_id() -> str:
    return uuid_to_string(random_uuid())


class ConsumerGroup:
    def __init__(
        self,
        group_id: str,
        settings: GroupSettings,
        topics: TopicsView,
        new_member_id: Callable[[], str] = _new_member_id,
    ) -> None:
        self._state = ConsumerState(group_id)
        self._settings = settings
        self._topics = topics
        self._new_member_id = new_member_id
        self._changes = Changes(self._state, settings, topics)
        self._departures = Departures(self._state, settings, self._changes)
        self._classic = ClassicMembers(self._state, settings, topics, self._changes, self._departures)

    # ---- what it is

    @property
    def group_id(self) -> str:
        return self._state.group_id

    @property
    def _config(self) -> GroupConfig:
        return self._settings.consumer_config(self.group_id)

    @property
    def durable(self) -> ConsumerState:
        """What the journal holds; for reading only."""
        return self._state

    @property
    def state(self) -> State:
        state = self._state
        if state.is_deleted:
            return State.DEAD
        if not state.members:
            return State.EMPTY
        if state.epoch > state.target_epoch:
            return State.ASSIGNING
        reconciled = all(member.is_reconciled_to(state.target_epoch) for member in state.members.values())
        return State.STABLE if reconciled else State.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return CONSUMER

    @property
    def is_empty(self) -> bool:
        return not self._state.members

    def subscribed_topics(self) -> frozenset[str]:
        return topics_of_all(self._state.members.values(), self._state.regexes)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics()

    def describe(self) -> DescribedGroup:
        return described(self._state, self.state_name, self._settings.consumer_assignors[0], self._topics)

    # ---- heartbeats

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: ClientInfo, version: int, now_ms: int
    ) -> Step[ConsumerGroupHeartbeatResponse]:
        """A member joins, stays alive, changes its subscription, revokes partitions, or leaves.

        To join a group that does not exist, call this on a new object; its records then create the group."""
        check_heartbeat(request, version, self._settings)
        plan = Plan(self.group_id, now_ms)
        if is_leave(request):
            return plan.step(self._leave(request, plan))
        records: list[GroupRecord] = []
        member = self._member(request, records, plan)
        updated = updated_member(member, request, client)
        updated = self._changes.of_member(member, updated, owned_partitions(request), now_ms, records)
        for record in records:
            plan.record(encode(record))
        self._set_timers(member, updated, plan)
        return plan.step(self._answer(request, member, updated))

    def _member(
        self, request: ConsumerGroupHeartbeatRequest, records: list[GroupRecord], plan: Plan
    ) -> Member:
        """The member that sent the request: an existing one, a new one, or one that takes over an instance
        id."""
        self._classic.check_room(request.member_id)
        member_id = request.member_id or self._new_member_id()
        if request.member_epoch != JOIN_EPOCH:
            member = known_member(self._state, member_id, request.instance_id)
            check_epoch(member, request)
            return member
        holder = None if request.instance_id is None else self._state.static_member(request.instance_id)
        # The same member may join again at any time, for example because it did not get the first answer.
        if holder is None or holder.member_id == member_id:
            return self._state.members.get(member_id, Member(member_id))
        check_released(holder)
        return replacement(self._state, holder, member_id, records, plan)

    def _set_timers(self, before: Member, member: Member, plan: Plan) -> None:
        plan.after(self._config.session_timeout_ms, SESSION, member.member_id)
        if before.classic is not None:
            plan.cancel(JOIN, member.member_id)
            plan.cancel(SYNC, member.member_id)
        if _is_late(member, REBALANCE):
            if before.revoking != member.revoking or before.classic is not None:
                plan.after(member.rebalance_timeout_ms, REBALANCE, member.member_id)
        elif _is_late(before, REBALANCE):
            plan.cancel(REBALANCE, member.member_id)

    def _answer(
        self, request: ConsumerGroupHeartbeatRequest, before: Member, member: Member
    ) -> ConsumerGroupHeartbeatResponse:
        answer = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._config.heartbeat_interval_ms,
        )
        if is_full(request) or before.assigned != member.assigned:
            listed = [
                TopicPartitions(topic_id=topic, partitions=sorted(partitions))
                for topic, partitions in sorted(member.assigned.items())
            ]
            answer.assignment = WireAssignment(topic_partitions=listed)
        return answer

    # ---- leaving

    def _leave(self, request: ConsumerGroupHeartbeatRequest, plan: Plan) -> ConsumerGroupHeartbeatResponse:
        member_id = request.member_id
        member = known_member(self._state, member_id, request.instance_id)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            # The session timer goes on: the instance id is kept for one session timeout.
            since = {topic: dict.fromkeys(partitions, 0) for topic, partitions in member.assigned.items()}
            left = replace(member, epoch=STATIC_LEAVE_EPOCH, revoking={}, since=since)
            plan.record(encode(current_record(self.group_id, left)))
            plan.cancel(REBALANCE, member_id)
        else:
            self._departures.fence([member_id], plan)
        return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)

    # ---- members that use the classic protocol

    def join(
        self, request: JoinGroupRequest, client: ClientInfo, version: int, now_ms: int
    ) -> Step[JoinGroupResponse]:
        member_id = request.member_id or self._new_member_id()
        return self._classic.join(request, member_id, client, version, now_ms)

    def sync(self, request: SyncGroupRequest, now_ms: int) -> Step[SyncGroupResponse]:
        return self._classic.sync(request, now_ms)

    def classic_heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Step[HeartbeatResponse]:
        return self._classic.heartbeat(request, now_ms)

    def leave(self, request: LeaveGroupRequest, now_ms: int) -> Step[LeaveGroupResponse]:
        """LeaveGroup. An administrator may name members of both protocols."""
        return self._classic.leave(request, now_ms)

    @classmethod
    def upgraded(
        cls, group_id: str, export: Export, settings: GroupSettings, topics: TopicsView, now_ms: int
    ) -> "tuple[ConsumerGroup, Step[None]]":
        """A consumer group that continues a classic group, and the Step that converts it.

        The records of the Step are already applied to the new group. The Step comes before that of the
        heartbeat which caused the conversion."""
        group = cls(group_id, settings, topics)
        plan = Plan(group_id, now_ms)
        for record in upgrade_records(group_id, export, settings, topics, now_ms):
            plan.record(record)
            typed = decode(record)
            if typed is not None and not isinstance(typed.key, GroupMetadataKey):
                group.apply(typed)
        for member in export.members:
            plan.after(member.session_timeout_ms, SESSION, member.id)
        return group, plan.step(None)

    # ---- offsets

    def check_commit(self, committer: Committer, *, transactional: bool, version: int) -> None:
        """A client that names no member may commit to an empty group only, except old transactional
        producers. A member may commit with an older epoch for partitions that it has owned since that
        epoch (KIP-1251)."""
        if committer.generation < 0 and self.is_empty:
            return
        if transactional and committer.is_anonymous:
            return
        member = known_member(self._state, committer.member_id)
        if not transactional and member.classic is None and version < _COMMIT_WITH_EPOCH:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, "members must use OffsetCommit version 9 or newer"
            )
        if committer.generation > member.epoch or not self._held_at_epoch(member, committer):
            _check_member_epoch(member, committer.generation)

    def _held_at_epoch(self, member: Member, committer: Committer) -> bool:
        for topic in committer.topics:
            topic_id = self._topics.topic_id(topic.name)
            for partition in topic.partitions:
                since = None if topic_id is None else member.held_since(topic_id, partition.partition_index)
                if since is None or since > committer.generation:
                    return False
        return True

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        _check_member_epoch(known_member(self._state, member_id or ""), member_epoch)

    def check_offset_delete(self) -> None:
        """Offsets of topics that no member reads may be deleted at any time."""

    def check_delete(self) -> None:
        if not self.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def retention_start_ms(self, commit_ms: int) -> int | None:
        """Retention begins with the commit. It applies only to topics that no member reads."""
        return commit_ms

    # ---- time, topics, the journal

    def lapse(self, key: Hashable, now_ms: int) -> Step[None]:
        """A timer ran out. If it ran out just before it was cancelled, there is nothing to do."""
        plan = Plan(self.group_id, now_ms)
        match key:
            case ("group", self.group_id, kind) if kind == DOWNGRADE:
                self._downgrade(plan)
            case ("group", self.group_id, kind, str(member_id)) if kind in (SESSION, REBALANCE, JOIN, SYNC):
                member = self._state.members.get(member_id)
                if member is not None and _is_late(member, kind):
                    self._departures.fence([member_id], plan)
            case _:
                raise ValueError(f"group {self.group_id} has no timer {key!r}")
        return plan.step(None)

    def _downgrade(self, plan: Plan) -> None:
        if not is_downgradable(self._state.members.values(), self._settings):
            return
        for record in downgrade_records(self._state, self._topics, plan.now_ms):
            plan.record(record)
        for member_id in self._state.members:
            for kind in (REBALANCE, JOIN, SYNC):
                plan.cancel(kind, member_id)
        plan.after(0, DOWNGRADED)

    def topics_changed(self, now_ms: int) -> Step[None]:
        """Topics were created, deleted or got partitions. Also called when the group was loaded."""
        plan = Plan(self.group_id, now_ms)
        if not self.is_empty:
            for record in self._changes.of_topics(now_ms):
                plan.record(encode(record))
        return plan.step(None)

    def loaded(self, now_ms: int) -> Step[None]:
        """Every member gets a full session timeout to find this coordinator, and full time to revoke
        partitions."""
        step = self.topics_changed(now_ms)
        plan = Plan(self.group_id, now_ms)
        for member in self._state.members.values():
            plan.after(self._config.session_timeout_ms, SESSION, member.member_id)
            if member.classic is None and _is_late(member, REBALANCE):
                plan.after(member.rebalance_timeout_ms, REBALANCE, member.member_id)
        if is_downgradable(self._state.members.values(), self._settings):
            plan.after(0, DOWNGRADE)
        step.timers += plan.step(None).timers
        return step

    def apply(self, record: GroupRecord) -> None:
        """Apply one of the group's records, live or replayed."""
        self._state.apply(record)

    def tombstones(self) -> list[JournalRecord]:
        return [encode(record) for record in self._state.tombstones()]


def _is_late(member: Member, kind: str) -> bool:
    """Whether a member whose timer of that kind ran out is late, and must be removed."""
    if kind == REBALANCE:
        return member.state is MemberState.UNREVOKED_PARTITIONS and not member.has_left_for_a_while
    return kind == SESSION or member.classic is not None


def _check_member_epoch(member: Member, epoch: int) -> None:
    if epoch != member.epoch:
        code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
        raise KafkaError(code, f"member {member.member_id} has epoch {member.epoch}, not {epoch}")
