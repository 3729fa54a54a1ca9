"""One step of a member from the partitions it has towards those it should have. Pure.

A member first gives up what it should not have: it stays at its epoch until it says so. Only then does it
go to the epoch of the target, with those of its partitions that nobody else has; for the rest it waits:

STABLE -> UNREVOKED                 the target takes partitions away
STABLE -> UNRELEASED                others still have some of its target
UNREVOKED -> STABLE, UNRELEASED     it gave them up
UNRELEASED -> STABLE                the others gave them up
UNREVOKED, UNRELEASED -> UNREVOKED  a newer target takes more away

Hence a partition is never given to a member while another may still read it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.assignors import NOTHING, Assignment
from barnabas.groups.consumer.members import Member, MemberState, holds, overlap
from barnabas.ids import Uuid


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member should get to, and what stands in its way."""

    epoch: int
    target: Assignment
    # The topics the member subscribes to now: the target may be older than its subscription.
    subscribed: frozenset[Uuid]
    subscription_changed: bool
    # Whether nobody has a partition.
    is_free: Callable[[Uuid, int], bool]
    # What the member says it has; None when it did not say.
    owned: Assignment | None


def reconcile(member: Member, goal: Goal) -> Member:
    """The member after the step; the same object when there is none to make."""
    if not goal.subscription_changed and member.is_reconciled_to(goal.epoch):
        return member
    if member.state is MemberState.UNKNOWN:
        if goal.owned is None or goal.owned:
            raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, "the member is in an unknown state; join again")
    elif member.state is MemberState.STABLE and member.epoch == goal.epoch:
        return _drop_unsubscribed(member, goal)
    elif member.state is MemberState.UNREVOKED_PARTITIONS and _still_owns(goal.owned, member.revoking):
        return _drop_unsubscribed(member, goal) if goal.subscription_changed else member
    return _advance(member, goal)


def _still_owns(owned: Assignment | None, revoking: Assignment) -> bool:
    return owned is None or overlap(owned, revoking)


def _drop_unsubscribed(member: Member, goal: Goal) -> Member:
    """Take away what the member no longer subscribes to, without waiting for a new target."""
    dropped = {
        topic: partitions for topic, partitions in member.assigned.items() if topic not in goal.subscribed
    }
    if not dropped:
        return member
    kept = {topic: partitions for topic, partitions in member.assigned.items() if topic in goal.subscribed}
    revoking = {
        topic: member.revoking.get(topic, frozenset()) | dropped.get(topic, frozenset())
        for topic in member.revoking.keys() | dropped.keys()
    }
    if _still_owns(goal.owned, revoking):
        return member.moved_to(member.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    return replace(member, previous_epoch=member.epoch, assigned=kept)


def _advance(member: Member, goal: Goal) -> Member:
    kept: dict[Uuid, frozenset[int]] = {}
    revoking: dict[Uuid, frozenset[int]] = {}
    assigned: dict[Uuid, frozenset[int]] = {}
    waits = False
    for topic in goal.target.keys() | member.assigned.keys():
        target = goal.target.get(topic, frozenset()) if topic in goal.subscribed else frozenset[int]()
        current = member.assigned.get(topic, frozenset())
        free = frozenset(number for number in target - current if _may_have(member, goal, topic, number))
        waits = waits or current | free != current | target
        kept |= _unless_empty(topic, current & target)
        revoking |= _unless_empty(topic, current - target)
        assigned |= _unless_empty(topic, (current & target) | free)
    if revoking and _still_owns(goal.owned, revoking):
        return member.moved_to(member.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return member.moved_to(goal.epoch, state, assigned, NOTHING)


def _may_have(member: Member, goal: Goal, topic: Uuid, number: int) -> bool:
    # What the member itself is giving up it may have again: nobody else got it meanwhile.
    return goal.is_free(topic, number) or holds(member.revoking, topic, number)


def _unless_empty(topic: Uuid, partitions: frozenset[int]) -> dict[Uuid, frozenset[int]]:
    return {topic: partitions} if partitions else {}
