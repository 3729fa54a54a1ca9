"""SyncGroup 0-5 in a classic group: the leader sends the assignment, and every member gets its part.

Versions: v3 static members · v5 the member names the protocol it expects."""

from barnabas.coordination.step import PARKED, Waiter
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.answers import sync_refused, synced
from barnabas.groups.classic.members import Member
from barnabas.groups.classic.plan import SESSION, SYNC, Plan
from barnabas.groups.classic.rebalancer import Rebalancer
from barnabas.groups.classic.records import group_record, group_value
from barnabas.groups.classic.states import State
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_NAMES_PROTOCOL_FROM = 5


def sync(
    rebalancer: Rebalancer, request: SyncGroupRequest, waiter: Waiter, version: int, plan: Plan
) -> SyncGroupResponse:
    try:
        member = _checked(rebalancer, request, version)
    except KafkaError as error:
        return sync_refused(error.code)
    if rebalancer.state is State.STABLE:
        rebalancer.has_synced(member, plan)
        plan.after(member.session_timeout_ms, SESSION, member.id)
        return synced(rebalancer.current(), member.assignment)
    if member.id == rebalancer.roster.leader:
        return _assign(rebalancer, request, plan)
    return _park(rebalancer, member, waiter, plan)


def _checked(rebalancer: Rebalancer, request: SyncGroupRequest, version: int) -> Member:
    if rebalancer.state is State.DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    names = (request.protocol_type, request.protocol_name)
    if version >= _NAMES_PROTOCOL_FROM and None in names:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    member = rebalancer.roster.check(request.member_id, request.group_instance_id)
    generation = rebalancer.generation
    if request.generation_id != generation.number:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    ours = (generation.protocol_type, generation.protocol_name)
    if any(name not in (None, our) for name, our in zip(names, ours, strict=True) if our is not None):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if rebalancer.state is State.PREPARING:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    return member


def _park(rebalancer: Rebalancer, member: Member, waiter: Waiter, plan: Plan) -> SyncGroupResponse:
    if member.sync is not None:
        # The member has sent SyncGroup again. Nobody reads the first answer, but its call must end.
        plan.answer(member.sync, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync = waiter
    rebalancer.has_synced(member, plan)
    parked: SyncGroupResponse = PARKED
    return parked


def _assign(rebalancer: Rebalancer, request: SyncGroupRequest, plan: Plan) -> SyncGroupResponse:
    """Propose the record with the assignment. Nobody is answered before it is committed. If it cannot be
    written, nothing has changed: the leader gets the error and may send the assignment again."""
    generation = rebalancer.current()
    assignments = {
        given.member_id: given.assignment
        for given in request.assignments
        if given.member_id in rebalancer.roster
    }
    subscriptions = [member.metadata(generation.protocol_name) for member in rebalancer.roster]
    rebalancer.settings.check_record(sum(map(len, (*subscriptions, *assignments.values()))))
    value = group_value(generation, rebalancer.roster, assignments, plan.now_ms)
    plan.record(group_record(rebalancer.group_id, value))
    for member in rebalancer.roster:
        if member.sync is not None:
            plan.answer(member.sync, synced(generation, assignments.get(member.id, b"")))
        if member.sync is not None or member.id == request.member_id:
            # Its session timer may have run out while the call was parked.
            plan.after(member.session_timeout_ms, SESSION, member.id)
    if rebalancer.unsynced <= {request.member_id}:
        plan.cancel(SYNC)
    return synced(generation, assignments.get(request.member_id, b""))
