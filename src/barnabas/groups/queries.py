"""Answers of DescribeGroups, ConsumerGroupDescribe and ListGroups."""

from collections.abc import Collection, Iterable

from barnabas.errors import ErrorCode, shortened
from barnabas.groups.classic.group import ClassicGroup, State
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.directory import AnyGroup
from barnabas.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from barnabas.wire.messages.describe_groups import DescribedGroup
from barnabas.wire.messages.list_groups import ListedGroup

# Before this version of DescribeGroups, a group that does not exist is shown as dead.
_KNOWS_NOT_FOUND_FROM = 6


def described_classic(group: AnyGroup | None, group_id: str, version: int) -> DescribedGroup:
    if isinstance(group, ClassicGroup):
        return group.describe()
    answer = DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
    if version >= _KNOWS_NOT_FOUND_FROM:
        answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        answer.error_message = shortened(f"there is no classic group {group_id!r}")
    return answer


def described_consumer(group: AnyGroup | None, group_id: str) -> DescribedConsumerGroup:
    if isinstance(group, ConsumerGroup):
        return group.describe()
    if not group_id:
        return DescribedConsumerGroup(
            error_code=ErrorCode.INVALID_GROUP_ID, error_message="the group id is empty"
        )
    return DescribedConsumerGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=shortened(f"there is no consumer group {group_id!r}"),
    )


def listed(groups: Iterable[AnyGroup], states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
    """The groups in one of these states and of one of these types, which are in lower case; an empty filter
    matches all groups."""
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state_name,
            group_type=_kind(group),
        )
        for group in groups
        if (not states or group.state_name.lower() in states) and (not types or _kind(group) in types)
    ]


def _kind(group: AnyGroup) -> str:
    return "consumer" if isinstance(group, ConsumerGroup) else "classic"
