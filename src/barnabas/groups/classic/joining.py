"""JoinGroup 0-9 in a classic group.

Versions: v0 one timeout for session and rebalance · v4 a dynamic member gets its id first and joins with it
(MEMBER_ID_REQUIRED) · v5 static members · v7 a protocol may be null · v9 a static leader that comes back
skips the assignment."""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.coordination.step import PARKED, Waiter
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.answers import join_refused, joined
from barnabas.groups.classic.members import ClientInfo, Member, ParkedJoin, chosen_protocol, protocols_of
from barnabas.groups.classic.plan import PENDING, SESSION, Plan
from barnabas.groups.classic.rebalancer import Rebalancer
from barnabas.groups.classic.records import group_record, group_value
from barnabas.groups.classic.states import State
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

# A new member sends no heartbeats while its join is parked, so a dead one is noticed only after this time.
NEW_MEMBER_TIMEOUT_MS = 300_000

_MEMBER_ID_FIRST_FROM = 4
_SKIP_ASSIGNMENT_FROM = 9


class JoinCall(NamedTuple):
    request: JoinGroupRequest
    client: ClientInfo
    version: int
    waiter: Waiter

    @property
    def parked(self) -> ParkedJoin:
        return ParkedJoin(self.waiter, self.version)

    @property
    def rebalance_timeout_ms(self) -> int:
        request = self.request
        given = self.version > 0 and request.rebalance_timeout_ms >= 0
        return request.rebalance_timeout_ms if given else request.session_timeout_ms

    def member(self, member_id: str) -> Member:
        request = self.request
        return Member(
            id=member_id,
            instance_id=request.group_instance_id,
            client=self.client,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            protocols=protocols_of(request.protocols),
            join=self.parked,
        )


class Joining:
    def __init__(self, rebalancer: Rebalancer, new_uuid: Callable[[], object]) -> None:
        self._rebalancer = rebalancer
        self._new_uuid = new_uuid

    def join(self, call: JoinCall, plan: Plan) -> JoinGroupResponse:
        member_id = call.request.member_id
        try:
            self._rebalancer.settings.check_session_timeout(call.request.session_timeout_ms)
            if not self._has_room(call.request):
                self._reject(member_id, plan)
                return join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, "", call.version)
            self._check_protocols(call.request)
            return self._join_again(call, plan) if member_id else self._join_without_id(call, plan)
        except KafkaError as error:
            return join_refused(error.code, member_id, call.version)

    # May it join at all?

    def _has_room(self, request: JoinGroupRequest) -> bool:
        """During a rebalance the first members to join get the places, so the last one may find none. A
        static member that comes back keeps its place."""
        rebalancer = self._rebalancer
        member = rebalancer.roster.get(request.member_id) or rebalancer.roster.holder(
            request.group_instance_id
        )
        if rebalancer.state in (State.EMPTY, State.DEAD):
            return True
        if rebalancer.state is State.PREPARING:
            has_joined = member is not None and member.join is not None
            return has_joined or rebalancer.roster.joined_count < rebalancer.settings.max_size
        return member is not None or len(rebalancer.roster) < rebalancer.settings.max_size

    def _reject(self, member_id: str, plan: Plan) -> None:
        self._rebalancer.forget_pending(member_id, plan)
        if member_id in self._rebalancer.roster:
            self._rebalancer.remove_members({member_id}, plan)

    def _check_protocols(self, request: JoinGroupRequest) -> None:
        rebalancer = self._rebalancer
        if rebalancer.state is State.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        names = [protocol.name for protocol in request.protocols]
        if rebalancer.state is State.EMPTY:
            fits = bool(request.protocol_type and names)
        else:
            same_type = request.protocol_type == rebalancer.generation.protocol_type
            fits = same_type and rebalancer.roster.knows_any(names)
        if not fits:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    # Without a member id

    def _join_without_id(self, call: JoinCall, plan: Plan) -> JoinGroupResponse:
        rebalancer, request = self._rebalancer, call.request
        instance_id = request.group_instance_id
        member_id = f"{call.client.id if instance_id is None else instance_id}-{self._new_uuid()}"
        holder = rebalancer.roster.holder(instance_id)
        if holder is not None:
            return self._replace_static_member(holder, member_id, call, plan)
        if instance_id is None and call.version >= _MEMBER_ID_FIRST_FROM:
            rebalancer.pending.add(member_id)
            plan.after(request.session_timeout_ms, PENDING, member_id)
            return join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id, call.version)
        return self._add(member_id, call, plan)

    def _add(self, member_id: str, call: JoinCall, plan: Plan) -> JoinGroupResponse:
        rebalancer = self._rebalancer
        if not len(rebalancer.roster):
            rebalancer.generation = rebalancer.generation._replace(protocol_type=call.request.protocol_type)
        if rebalancer.first_wait is not None:
            rebalancer.first_wait.has_newcomer = True
        if member_id in rebalancer.pending:
            rebalancer.pending.discard(member_id)
            plan.cancel(PENDING, member_id)
        member = call.member(member_id)
        member.is_new = True
        rebalancer.roster.add(member)
        plan.after(NEW_MEMBER_TIMEOUT_MS, SESSION, member_id)
        rebalancer.begin_or_complete(plan)
        return _PARKED_JOIN

    # A static member under a new id

    def _replace_static_member(
        self, old: Member, member_id: str, call: JoinCall, plan: Plan
    ) -> JoinGroupResponse:
        rebalancer = self._rebalancer
        successor = call.member(member_id)
        successor.assignment = old.assignment
        if rebalancer.state is State.STABLE and self._keeps_protocol(old, successor):
            return self._replace_without_rebalance(old, successor, call.version, plan)
        rebalancer.take_over(old, successor, plan)
        rebalancer.begin_or_complete(plan)
        return _PARKED_JOIN

    def _keeps_protocol(self, old: Member, successor: Member) -> bool:
        members = [successor if member is old else member for member in self._rebalancer.roster]
        return chosen_protocol(members) == self._rebalancer.generation.protocol_name

    def _replace_without_rebalance(
        self, old: Member, successor: Member, version: int, plan: Plan
    ) -> JoinGroupResponse:
        """The new id gets the assignment of the old one without a rebalance, once the record is applied."""
        rebalancer = self._rebalancer
        rebalancer.successor = successor
        was = rebalancer.current()
        leads = was.leader == old.id
        now = was._replace(leader=successor.id) if leads else was
        members = [successor if member is old else member for member in rebalancer.roster]
        assignments = {member.id: member.assignment for member in members}
        plan.record(group_record(rebalancer.group_id, group_value(now, members, assignments, plan.now_ms)))
        plan.cancel(SESSION, old.id)
        plan.after(successor.session_timeout_ms, SESSION, successor.id)
        if version >= _SKIP_ASSIGNMENT_FROM:
            return joined(now, successor.id, members if leads else (), skip_assignment=leads)
        # An old client that saw itself as the leader would assign partitions although the group is stable.
        return joined(was, successor.id)

    # With a member id

    def _join_again(self, call: JoinCall, plan: Plan) -> JoinGroupResponse:
        rebalancer, request = self._rebalancer, call.request
        if request.member_id in rebalancer.pending and request.group_instance_id is None:
            return self._add(request.member_id, call, plan)
        member = rebalancer.roster.check(request.member_id, request.group_instance_id)
        if self._has_news(member, call):
            self._update(member, call, plan)
            rebalancer.begin_or_complete(plan)
            return _PARKED_JOIN
        # It did not get its last answer, or it will only send SyncGroup again.
        plan.after(member.session_timeout_ms, SESSION, member.id)
        return rebalancer.answer_joined(member)

    def _has_news(self, member: Member, call: JoinCall) -> bool:
        """In a stable group the leader joins again because it saw that topics have changed."""
        rebalancer = self._rebalancer
        if rebalancer.state is State.PREPARING:
            return True
        leads = rebalancer.state is State.STABLE and member.id == rebalancer.roster.leader
        return leads or member.protocols != protocols_of(call.request.protocols)

    def _update(self, member: Member, call: JoinCall, plan: Plan) -> None:
        request = call.request
        self._rebalancer.roster.offer(member, protocols_of(request.protocols))
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = call.rebalance_timeout_ms
        if member.join is not None:
            # The member has sent JoinGroup again. Nobody reads the first answer, but its call must end.
            waiter, version = member.join
            plan.answer(waiter, join_refused(ErrorCode.REBALANCE_IN_PROGRESS, member.id, version))
        member.join = call.parked


# The reply of a parked JoinGroup: the answer comes with a later step.
_PARKED_JOIN: JoinGroupResponse = PARKED
