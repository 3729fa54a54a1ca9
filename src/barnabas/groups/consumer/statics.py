"""Who is a member of a consumer group, and who goes by a static name (instance id) in it."""

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
    """The member that speaks. Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID when its static name has
    gone to another."""
    if instance_id is None:
        member = state.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {state.group_id} has no member {member_id}")
        return member
    holder = static_holder(state, instance_id)
    if holder.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID, f"{instance_id} is now member {holder.member_id}, not {member_id}"
        )
    return holder


def static_holder(state: ConsumerState, instance_id: str) -> Member:
    holder = state.static_member(instance_id)
    if holder is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {state.group_id} knows no {instance_id}")
    return holder


def check_released(holder: Member) -> None:
    """A static name of the consumer protocol is free once its holder said that it leaves."""
    if holder.classic is None and not holder.has_left_for_a_while:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID, f"member {holder.member_id} still uses {holder.instance_id}"
        )


def replacement(
    state: ConsumerState, holder: Member, member_id: str, records: list[GroupRecord], plan: Plan
) -> Member:
    """A member that takes over a static name, and with it all that its holder had."""
    member = replace(holder, member_id=member_id, epoch=0, previous_epoch=0)
    records += member_tombstones(state.group_id, holder.member_id)
    records.append(metadata_record(state.group_id, member))
    records.append(target_record(state.group_id, member_id, state.share(holder)))
    records.append(current_record(state.group_id, member))
    cancel_timers(holder.member_id, plan)
    return member
