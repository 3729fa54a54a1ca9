"""Checks a ConsumerGroupHeartbeat without looking at the group, and applies it to a member."""

from dataclasses import replace

from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.assignors import Assignment
from barnabas.groups.classic.members import ClientInfo
from barnabas.groups.consumer.members import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Member,
    assignment_of,
    is_within,
)
from barnabas.groups.settings import GroupSettings
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

# From this version on clients create their member ids, so that a lost answer leaves no unused member.
MEMBER_ID_FROM_CLIENT = 1
# An assignment is computed in one step, which takes about 2 ms for each thousand names.
SUBSCRIBED_NAMES_MAX = 20_000


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, settings: GroupSettings) -> None:
    """Raises INVALID_REQUEST or UNSUPPORTED_ASSIGNOR, or what `check_record` raises."""
    epoch = request.member_epoch
    if epoch < STATIC_LEAVE_EPOCH:
        raise _invalid(f"the member epoch {epoch} is not valid")
    if not request.member_id.strip() and (version >= MEMBER_ID_FROM_CLIENT or epoch != JOIN_EPOCH):
        raise _invalid("the member id is empty")
    names = {"group id": request.group_id, "instance id": request.instance_id, "rack id": request.rack_id}
    for what, name in names.items():
        if name is not None and not name.strip():
            raise _invalid(f"the {what} is empty")
    if epoch == JOIN_EPOCH:
        _check_join(request)
    topics = request.subscribed_topic_names or []
    if len(topics) > SUBSCRIBED_NAMES_MAX:
        raise _invalid(f"a member can subscribe to at most {SUBSCRIBED_NAMES_MAX} topics by name")
    settings.check_record(sum(map(len, topics)))
    if epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise _invalid("only a member with an instance id can leave with epoch -2")
    assignors = settings.consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in assignors:
        known = ", ".join(assignors)
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"unknown assignor {request.server_assignor!r}; the known assignors are: {known}",
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("a member that joins must send its rebalance timeout")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("a member that joins must send an empty list of owned partitions")
    # An empty list or expression is valid: the member reads nothing yet.
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("a member that joins must send topic names or a regular expression")


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)


def is_leave(request: ConsumerGroupHeartbeatRequest) -> bool:
    return request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH)


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the request has all fields, as at a join or after an error; then the answer has them, too."""
    if request.member_epoch == JOIN_EPOCH:
        return True
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return subscribes and request.rebalance_timeout_ms != -1 and request.topic_partitions is not None


def owned_partitions(request: ConsumerGroupHeartbeatRequest) -> Assignment | None:
    return None if request.topic_partitions is None else assignment_of(request.topic_partitions)


def check_epoch(member: Member, request: ConsumerGroupHeartbeatRequest) -> None:
    """Raises FENCED_MEMBER_EPOCH if the request does not have the member's epoch."""
    epoch = request.member_epoch
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    owned = owned_partitions(request)
    answer_was_lost = epoch == member.previous_epoch and epoch < member.epoch
    if answer_was_lost and owned is not None and is_within(owned, member.assigned):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"member {member.member_id} has epoch {member.epoch}, not {epoch}: it must give up its "
        "partitions and join again",
    )


def updated_member(member: Member, request: ConsumerGroupHeartbeatRequest, client: ClientInfo) -> Member:
    """The member with the values of the request; fields that the request leaves out do not change."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_regex=member.topic_regex if regex is None else regex,
        client_id=client.id,
        client_host=client.host,
        classic=None,
    )
