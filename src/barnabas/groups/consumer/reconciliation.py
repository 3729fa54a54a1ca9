"""One step of a member from the partitions it has to those it should have. Pure.

A member first revokes what it should not have, and keeps its epoch until it confirms that. Then it moves to
the epoch of the target and gets those of its partitions that no other member has. It waits for the others:

STABLE -> UNREVOKED                 the target takes partitions away
STABLE -> UNRELEASED                other members still have some of its target
UNREVOKED -> STABLE, UNRELEASED     it has revoked its partitions
UNRELEASED -> STABLE                the other members have revoked theirs
UNREVOKED, UNRELEASED -> UNREVOKED  a newer target takes more away

So a member never gets a partition that another member may still read."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.assignors import NOTHING, Assignment
from barnabas.groups.consumer.members import Member, MemberState, holds, overlap
from barnabas.ids import Uuid


@dataclass(frozen=True, slots=True)
class Goal:
    """What a member should have, and what decides whether it can have it now."""

    epoch: int
    target: Assignment
    # The topics that the member subscribes to now; the target may be older than the subscription.
    subscribed: frozenset[Uuid]
    subscription_changed: bool
    # Whether no member has a partition.
    is_free: Callable[[Uuid, int], bool]
    # What the member says it has; None if it did not say.
    owned: Assignment | None


def reconcile(member: Member, goal: Goal) -> Member:
    """The member after the step; the same object if there is nothing to do."""
    if not goal.subscription_changed and member.is_reconciled_to(goal.epoch):
        return member
    if member.state is MemberState.UNKNOWN:
        if goal.owned is None or goal.owned:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH, "the state of the member is unknown; it must join again"
            )
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
    # A member may keep a partition that it has not revoked yet: no other member can have it.
    return goal.is_free(topic, number) or holds(member.revoking, topic, number)


def _unless_empty(topic: Uuid, partitions: frozenset[int]) -> dict[Uuid, frozenset[int]]:
    return {topic: partitions} if partitions else {}
