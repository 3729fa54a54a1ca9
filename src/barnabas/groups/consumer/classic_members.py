"""Members of a consumer group that use the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

The coordinator assigns partitions to them like to any other member. When there is a new epoch, such a
member is told to join again. In JoinGroup it says what it owns and gets its epoch as the generation; in
SyncGroup it gets its partitions. There is no leader, and both requests are answered at once."""

from collections.abc import Iterable
from dataclasses import replace

from barnabas.coordination.step import Step
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.members import ClientInfo, protocols_of
from barnabas.groups.classic.plan import JOIN, SESSION, SYNC, Plan
from barnabas.groups.classic.protocol import by_topic_id, read_subscription, version_of, write_assignment
from barnabas.groups.classic.records import CONSUMER
from barnabas.groups.consumer.changes import REBALANCE, Changes, Departures
from barnabas.groups.consumer.members import ClassicDetails, Member, MemberState, holds
from barnabas.groups.consumer.migration import DOWNGRADE, is_downgradable
from barnabas.groups.consumer.state import ConsumerState
from barnabas.groups.consumer.statics import known_member, replacement, static_holder
from barnabas.groups.records import GroupRecord, encode
from barnabas.groups.settings import GroupSettings, TopicsView
from barnabas.wire.codec import WireError
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

# From this version on a member must join with an id, so that a lost answer leaves no unused member.
_MEMBER_ID_REQUIRED = 4


class ClassicMembers:
    def __init__(
        self,
        state: ConsumerState,
        settings: GroupSettings,
        topics: TopicsView,
        changes: Changes,
        departures: Departures,
    ) -> None:
        self._state = state
        self._settings = settings
        self._topics = topics
        self._changes = changes
        self._departures = departures
        # In memory only: members that were told to join again, and have a timer for that.
        self._must_rejoin: set[str] = set()

    # ---- JoinGroup

    def join(
        self, request: JoinGroupRequest, member_id: str, client: ClientInfo, version: int, now_ms: int
    ) -> Step[JoinGroupResponse]:
        """`member_id` is the request's, or a new one when it has none."""
        subscription = self._check_join(request, member_id)
        plan = Plan(self._state.group_id, now_ms)
        is_anonymous = not request.member_id
        if is_anonymous and request.group_instance_id is None and version >= _MEMBER_ID_REQUIRED:
            return plan.step(
                JoinGroupResponse(error_code=int(ErrorCode.MEMBER_ID_REQUIRED), member_id=member_id)
            )
        records: list[GroupRecord] = []
        member = self._joining_member(member_id, request.group_instance_id, is_anonymous, records, plan)
        updated = _with_join(member, request, subscription, client)
        owned = by_topic_id(subscription.owned_partitions, self._topics)
        updated = self._changes.of_member(member, updated, owned, now_ms, records)
        for record in records:
            plan.record(encode(record))
        self._set_timers(request, updated, plan)
        return plan.step(
            JoinGroupResponse(
                member_id=member_id,
                generation_id=updated.epoch,
                protocol_type=CONSUMER,
                protocol_name=request.protocols[0].name,
            )
        )

    def _check_join(self, request: JoinGroupRequest, member_id: str) -> ConsumerProtocolSubscription:
        self._settings.check_session_timeout(request.session_timeout_ms)
        self.check_room(member_id)
        shared = self._shared_protocols()
        offered = {protocol.name for protocol in request.protocols}
        fits = bool(offered) if shared is None else bool(offered & shared)
        if request.protocol_type != CONSUMER or not fits:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        try:
            return read_subscription(bytes(request.protocols[0].metadata))
        except WireError as error:
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"cannot read the subscription: {error}"
            ) from error

    def check_room(self, member_id: str) -> None:
        is_full = len(self._state.members) >= self._settings.consumer_max_size
        if is_full and member_id not in self._state.members:
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)

    def _shared_protocols(self) -> set[str] | None:
        """The protocols that all classic members support; None when there are no classic members."""
        offers = [
            {name for name, _ in member.classic.protocols}
            for member in self._state.members.values()
            if member.classic is not None
        ]
        return set.intersection(*offers) if offers else None

    def _joining_member(
        self,
        member_id: str,
        instance_id: str | None,
        is_anonymous: bool,
        records: list[GroupRecord],
        plan: Plan,
    ) -> Member:
        if instance_id is None:
            return self._state.members.get(member_id, Member(member_id))
        if not is_anonymous:
            return known_member(self._state, member_id, instance_id)
        holder = self._state.static_member(instance_id)
        return (
            Member(member_id)
            if holder is None
            else replacement(self._state, holder, member_id, records, plan)
        )

    def _set_timers(self, request: JoinGroupRequest, member: Member, plan: Plan) -> None:
        self._must_rejoin.discard(member.member_id)
        plan.cancel(JOIN, member.member_id)
        plan.cancel(REBALANCE, member.member_id)
        plan.after(request.session_timeout_ms, SESSION, member.member_id)
        plan.after(member.rebalance_timeout_ms, SYNC, member.member_id)
        rest = [each for name, each in self._state.members.items() if name != member.member_id]
        if member.instance_id is not None:
            rest = [each for each in rest if each.instance_id != member.instance_id]
        if is_downgradable([*rest, member], self._settings):
            plan.after(0, DOWNGRADE)

    # ---- SyncGroup and Heartbeat

    def sync(self, request: SyncGroupRequest, now_ms: int) -> Step[SyncGroupResponse]:
        member, classic = self._sender(request.member_id, request.group_instance_id, request.generation_id)
        name, metadata = classic.protocols[0]
        if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, name):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        plan = Plan(self._state.group_id, now_ms)
        is_behind = self._state.epoch > member.epoch
        if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._make_rejoin(member, plan)
            return plan.step(SyncGroupResponse(error_code=int(ErrorCode.REBALANCE_IN_PROGRESS)))
        plan.cancel(SYNC, member.member_id)
        plan.after(classic.session_timeout_ms, SESSION, member.member_id)
        return plan.step(
            SyncGroupResponse(
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
                assignment=write_assignment(member.assigned, version_of(metadata), self._topics),
            )
        )

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Step[HeartbeatResponse]:
        member, classic = self._sender(request.member_id, request.group_instance_id, request.generation_id)
        plan = Plan(self._state.group_id, now_ms)
        plan.after(classic.session_timeout_ms, SESSION, member.member_id)
        if not self._should_rejoin(member):
            return plan.step(HeartbeatResponse())
        self._make_rejoin(member, plan)
        return plan.step(HeartbeatResponse(error_code=int(ErrorCode.REBALANCE_IN_PROGRESS)))

    def _sender(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[Member, ClassicDetails]:
        member = known_member(self._state, member_id, instance_id)
        if member.classic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"member {member_id} does not use the classic protocol"
            )
        if member.epoch != generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return member, member.classic

    def _should_rejoin(self, member: Member) -> bool:
        """Whether there is a new epoch, a partition to revoke, or a free partition for the member."""
        if member.epoch < self._state.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
            return True
        return member.state is MemberState.UNRELEASED_PARTITIONS and not self._waits(member)

    def _waits(self, member: Member) -> bool:
        target = self._state.share(member)
        return any(
            not holds(member.assigned, topic, partition) and not self._state.is_free(topic, partition)
            for topic, partitions in target.items()
            for partition in partitions
        )

    def _make_rejoin(self, member: Member, plan: Plan) -> None:
        """The member must join again before a timer runs out: others may wait for its partitions."""
        if member.member_id not in self._must_rejoin:
            self._must_rejoin.add(member.member_id)
            plan.after(member.rebalance_timeout_ms, JOIN, member.member_id)

    # ---- LeaveGroup

    def leave(self, request: LeaveGroupRequest, now_ms: int) -> Step[LeaveGroupResponse]:
        plan = Plan(self._state.group_id, now_ms)
        leaving: dict[str, None] = {}
        answers = [self._leave_one(identity, leaving) for identity in _identities(request)]
        self._must_rejoin -= leaving.keys()
        self._departures.fence(list(leaving), plan)
        return plan.step(LeaveGroupResponse(members=answers))

    def _leave_one(self, identity: MemberIdentity, leaving: dict[str, None]) -> MemberResponse:
        code = ErrorCode.NONE
        try:
            if identity.group_instance_id is not None and not identity.member_id:
                # An administrator removes the member that has this instance id.
                member = static_holder(self._state, identity.group_instance_id)
            else:
                member = known_member(self._state, identity.member_id, identity.group_instance_id)
            leaving[member.member_id] = None
        except KafkaError as error:
            code = error.code
        return MemberResponse(
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            error_code=int(code),
        )


def _identities(request: LeaveGroupRequest) -> Iterable[MemberIdentity]:
    """Before version 3 a request has one member."""
    return request.members or [MemberIdentity(member_id=request.member_id)]


def _with_join(
    member: Member, request: JoinGroupRequest, subscription: ConsumerProtocolSubscription, client: ClientInfo
) -> Member:
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        # Version 0 has one timeout for both.
        rebalance_timeout_ms=request.session_timeout_ms if timeout_ms == -1 else timeout_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=client.id,
        client_host=client.host,
        classic=ClassicDetails(
            request.session_timeout_ms,
            tuple((protocol.name, protocol.metadata) for protocol in protocols_of(request.protocols)),
        ),
    )
