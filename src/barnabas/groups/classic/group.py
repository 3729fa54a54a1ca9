"""A classic consumer group: one member is the leader and assigns the partitions to all members.

Rule 1: everything that changes a group is in this package, and is called through this module. Rule 2: no I/O,
no clock, no asyncio. Rule 3: only `apply` changes durable state; rebalancer.py says what that is.

states      the states of a group and the moves between them
members     members, static members, the leader, protocols and votes
rebalancer  how a rebalance begins and ends, and how members are removed
joining     JoinGroup          syncing  SyncGroup
records     the group in the journal

What the runtime guarantees: the records of a decision are applied before the next decision; a call is not
answered before all earlier records are committed; a timer whose record could not be written runs again."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import NamedTuple
from uuid import uuid4

from barnabas.coordination.step import JournalRecord, Step, Timer, Waiter
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.joining import JoinCall, Joining
from barnabas.groups.classic.members import ClientInfo, Member, chosen_protocol
from barnabas.groups.classic.plan import JOIN, PENDING, SESSION, SYNC, Plan, timer_key
from barnabas.groups.classic.rebalancer import Rebalancer
from barnabas.groups.classic.records import CONSUMER, Generation, group_record, group_tombstone, group_value
from barnabas.groups.classic.states import State
from barnabas.groups.classic.syncing import sync as sync_group
from barnabas.groups.group import Committer
from barnabas.groups.record_schemas import GroupMetadataValue
from barnabas.groups.settings import GroupSettings
from barnabas.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

__all__ = ["ClassicGroup", "ClientInfo", "Export", "Member", "State", "downgrade_record"]


class Export(NamedTuple):
    """What a classic group becomes a consumer group from: copies of its members, without parked calls."""

    generation: Generation
    members: tuple[Member, ...]


def downgrade_record(group_id: str, epoch: int, members: Iterable[Member], now_ms: int) -> JournalRecord:
    """The record of a classic group that continues a consumer group: its epoch, members, assignments.

    It has no leader, because no leader made this generation. A coordinator that loads it begins a
    rebalance."""
    present = list(members)
    generation = Generation(epoch, CONSUMER, chosen_protocol(present), None)
    assignments = {member.id: member.assignment for member in present}
    return group_record(group_id, group_value(generation, present, assignments, now_ms))


class ClassicGroup:
    def __init__(
        self, group_id: str, settings: GroupSettings, new_uuid: Callable[[], object] = uuid4
    ) -> None:
        self._rebalancer = Rebalancer(group_id, settings)
        self._joining = Joining(self._rebalancer, new_uuid)

    # What it is now

    @property
    def group_id(self) -> str:
        return self._rebalancer.group_id

    @property
    def state(self) -> State:
        return self._rebalancer.state

    @property
    def state_name(self) -> str:
        return self._rebalancer.state.value

    @property
    def generation(self) -> int:
        return self._rebalancer.generation.number

    @property
    def protocol_type(self) -> str:
        return self._rebalancer.generation.protocol_type

    @property
    def leader(self) -> str | None:
        return self._rebalancer.roster.leader

    @property
    def members(self) -> tuple[Member, ...]:
        """For reading only."""
        return tuple(self._rebalancer.roster)

    @property
    def pending_members(self) -> frozenset[str]:
        return frozenset(self._rebalancer.pending)

    @property
    def is_empty(self) -> bool:
        return self._rebalancer.state is State.EMPTY

    @property
    def saved(self) -> GroupMetadataValue | None:
        """The last record that was applied; None if the journal has no record of the group."""
        return self._rebalancer.saved

    @property
    def is_unused(self) -> bool:
        """Whether the group has no record, no members, and nobody who was given a member id."""
        return self.is_empty and self.saved is None and not self._rebalancer.pending

    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics of the last generation; None if a subscription cannot be read."""
        return self._rebalancer.topics

    def is_subscribed_to(self, topic: str) -> bool:
        topics = self._rebalancer.topics
        return self.protocol_type == CONSUMER if topics is None else topic in topics

    def describe(self) -> DescribedGroup:
        """Member metadata is shown for a stable group only: during a rebalance no protocol is chosen yet."""
        generation = self._rebalancer.generation
        name = generation.protocol_name if self.state is State.STABLE else None
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            protocol_type=generation.protocol_type,
            protocol_data=name or "",
            members=[
                DescribedGroupMember(
                    member_id=member.id,
                    group_instance_id=member.instance_id,
                    client_id=member.client.id,
                    client_host=member.client.host,
                    member_metadata=b"" if name is None else member.metadata(name),
                    member_assignment=member.assignment,
                )
                for member in self._rebalancer.roster
            ],
        )

    # Requests of members

    def join(
        self, request: JoinGroupRequest, client: ClientInfo, version: int, waiter: Waiter, now_ms: int
    ) -> Step[JoinGroupResponse]:
        plan = self._plan(now_ms)
        return plan.step(self._joining.join(JoinCall(request, client, version, waiter), plan))

    def sync(
        self, request: SyncGroupRequest, waiter: Waiter, version: int, now_ms: int
    ) -> Step[SyncGroupResponse]:
        plan = self._plan(now_ms)
        return plan.step(sync_group(self._rebalancer, request, waiter, version, plan))

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Step[HeartbeatResponse]:
        plan = self._plan(now_ms)
        try:
            self._check_member(request.member_id, request.group_instance_id, request.generation_id)
        except KafkaError as error:
            return plan.step(HeartbeatResponse(error_code=error.code))
        self._keep_alive(request.member_id, plan)
        preparing = self.state is State.PREPARING
        code = ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE
        return plan.step(HeartbeatResponse(error_code=code))

    def leave(self, request: LeaveGroupRequest, version: int, now_ms: int) -> Step[LeaveGroupResponse]:
        """Remove members by their id. An administrator names static members by their instance id alone.

        The wire package turns versions 0-2 into a list of one member, and its error into the whole
        answer's."""
        plan = self._plan(now_ms)
        if self.state is State.DEAD:
            return plan.step(LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        leaving: set[str] = set()
        answers = []
        for identity in request.members:
            answer = MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id
            )
            answers.append(answer)
            try:
                self._leave_one(identity, leaving, plan)
            except KafkaError as error:
                answer.error_code = error.code
        if leaving:
            self._rebalancer.remove_members(leaving, plan)
        return plan.step(LeaveGroupResponse(members=answers))

    def _leave_one(self, identity: MemberIdentity, leaving: set[str], plan: Plan) -> None:
        rebalancer = self._rebalancer
        if identity.member_id in rebalancer.pending:
            rebalancer.forget_pending(identity.member_id, plan)
            return
        if identity.member_id:
            member = rebalancer.roster.check(identity.member_id, identity.group_instance_id)
        else:
            member = self._holder(identity.group_instance_id)
        if member.id in leaving:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        leaving.add(member.id)

    def _holder(self, instance_id: str | None) -> Member:
        holder = self._rebalancer.roster.holder(instance_id)
        if holder is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return holder

    def _check_member(self, member_id: str, instance_id: str | None, generation: int) -> None:
        if self.state is State.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._rebalancer.roster.check(member_id, instance_id)
        if generation != self.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)

    def _keep_alive(self, member_id: str, plan: Plan) -> None:
        plan.after(self._rebalancer.roster[member_id].session_timeout_ms, SESSION, member_id)

    # Offsets

    def check_commit(self, committer: Committer, *, transactional: bool, version: int) -> None:
        """A client that names no member may commit to an empty group only. During a rebalance members may
        commit what they have read, until they have joined the next generation and have no assignment yet."""
        if self.state is State.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if committer.generation < 0 and self.is_empty:
            return
        if not committer.is_anonymous:
            self._check_member(committer.member_id, committer.instance_id, committer.generation)
        elif not transactional and not self.is_empty:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and self.state is State.COMPLETING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def touch(self, member_id: str) -> list[Timer]:
        """An accepted commit shows that its member is alive, as a heartbeat does."""
        member = self._rebalancer.roster.get(member_id)
        if member is None:
            return []
        return [Timer(timer_key(self.group_id, SESSION, member_id), member.session_timeout_ms)]

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self._check_exists()

    def check_offset_delete(self) -> None:
        """A group of consumers may lose offsets of topics that no member reads. What members of another
        protocol type read is unknown, so their group must be empty."""
        self._check_exists()
        if not self.is_empty and self.protocol_type != CONSUMER:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        self._check_exists()
        if not self.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def _check_exists(self) -> None:
        if self.state is State.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)

    def retention_start_ms(self, commit_ms: int) -> int | None:
        """The offsets of a group with members are kept, except for topics that its consumers no longer read.
        The time of an empty group counts from the moment it became empty."""
        if not self.protocol_type:
            return commit_ms
        if self.is_empty:
            emptied_ms = -1 if self.saved is None else self.saved.current_state_timestamp
            return commit_ms if emptied_ms < 0 else emptied_ms
        is_known = self.state is State.STABLE and self._rebalancer.topics is not None
        return commit_ms if is_known else None

    # Time, the journal, and other kinds of groups

    def lapse(self, key: Hashable, now_ms: int) -> Step[None]:
        """A timer ran out. If it ran out just before it was cancelled, there is nothing to do."""
        plan = self._plan(now_ms)
        match key:
            case ("group", self.group_id, kind, str(member_id)) if kind == SESSION:
                self._session_is_over(member_id, plan)
            case ("group", self.group_id, kind, str(member_id)) if kind == PENDING:
                self._rebalancer.forget_pending(member_id, plan)
            case ("group", self.group_id, kind) if kind == JOIN:
                self._rebalancer.join_time_is_over(plan)
            case ("group", self.group_id, kind) if kind == SYNC:
                self._rebalancer.sync_time_is_over(plan)
            case _:
                raise ValueError(f"group {self.group_id} has no timer {key!r}")
        return plan.step(None)

    def _session_is_over(self, member_id: str, plan: Plan) -> None:
        member = self._rebalancer.roster.get(member_id)
        if member is not None and not member.waits_for_answer:
            self._rebalancer.remove_members({member_id}, plan)

    def apply(self, value: GroupMetadataValue | None) -> None:
        """Apply the group's record, live or replayed; None is its tombstone."""
        self._rebalancer.apply(value)

    def loaded(self, now_ms: int) -> Step[None]:
        """Every member gets a full session timeout to find this coordinator."""
        plan = self._plan(now_ms)
        for member in self._rebalancer.roster:
            self._keep_alive(member.id, plan)
        is_downgraded = self.saved is not None and self.saved.leader is None
        has_too_many = len(self._rebalancer.roster) > self._rebalancer.settings.max_size
        if has_too_many or (is_downgraded and not self.is_empty):
            self._rebalancer.begin(plan)
        return plan.step(None)

    def rebalance(self, now_ms: int) -> Step[None]:
        """Make all members join again, as after the group was converted from a consumer group."""
        plan = self._plan(now_ms)
        if self.state in (State.STABLE, State.COMPLETING):
            self._rebalancer.begin(plan)
        return plan.step(None)

    def tombstones(self) -> list[JournalRecord]:
        return [group_tombstone(self.group_id)]

    def refuse_waiting(self, code: ErrorCode, now_ms: int) -> Step[None]:
        """Answer all parked calls with an error and cancel all timers, because the group is converted or this
        broker no longer coordinates it. The state does not change here: a tombstone or a drop does that."""
        plan = self._plan(now_ms)
        self._rebalancer.refuse_waiting(code, plan)
        return plan.step(None)

    def export(self) -> Export:
        members = tuple(replace(member, join=None, sync=None) for member in self._rebalancer.roster)
        return Export(self._rebalancer.current(), members)

    def _plan(self, now_ms: int) -> Plan:
        return Plan(self.group_id, now_ms)
