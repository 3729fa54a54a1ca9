"""Finds members of a consumer group by member id and instance id, and replaces static members."""

from dataclasses import replace

from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.plan import Plan
from barnabas.groups.consumer.changes import cancel_timers
from barnabas.groups.consumer.members import (
    Member,
    current_record,
    member_tombstones,
    metadata_record,
    target_record,
)
from barnabas.groups.consumer.state import ConsumerState
from barnabas.groups.records import GroupRecord


def known_member(state: ConsumerState, member_id: str, instance_id: str | None = None) -> Member:
    """The member that sent a request. Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another member
    has its instance id now."""
    if instance_id is None:
        member = state.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {state.group_id} has no member {member_id}")
        return member
    holder = static_holder(state, instance_id)
    if holder.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"instance {instance_id} is now member {holder.member_id}, not {member_id}",
        )
    return holder


def static_holder(state: ConsumerState, instance_id: str) -> Member:
    holder = state.static_member(instance_id)
    if holder is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {state.group_id} has no instance {instance_id}")
    return holder


def check_released(holder: Member) -> None:
    """The instance id of a member of the consumer protocol is free when the member has left."""
    if holder.classic is None and not holder.has_left_for_a_while:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"member {holder.member_id} still uses instance {holder.instance_id}",
        )


def replacement(
    state: ConsumerState, holder: Member, member_id: str, records: list[GroupRecord], plan: Plan
) -> Member:
    """A member that takes over an instance id with everything its last holder had."""
    member = replace(holder, member_id=member_id, epoch=0, previous_epoch=0)
    records += member_tombstones(state.group_id, holder.member_id)
    records.append(metadata_record(state.group_id, member))
    records.append(target_record(state.group_id, member_id, state.share(holder)))
    records.append(current_record(state.group_id, member))
    cancel_timers(holder.member_id, plan)
    return member
