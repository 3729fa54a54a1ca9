"""Rules for groups that are functions of their own: OffsetFetch, FindCoordinator, groups of KIP-848."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from barnabas.broker.authorization.authorizer import REFUSALS
from barnabas.broker.authorization.rules import (
    PASSED,
    Elements,
    Finish,
    Outcome,
    Right,
    Rights,
    adding,
    refused,
    split,
)
from barnabas.broker.authorization.topics import DENIED, name_by_id
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.security.acls import Operation, ResourceType
from barnabas.wire.messages.consumer_group_describe import DescribedGroup, Member
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

DESCRIBE_TOPIC = Right(Operation.DESCRIBE, ResourceType.TOPIC)
DESCRIBE_GROUP = Right(Operation.DESCRIBE, ResourceType.GROUP)
CLUSTER_ACTION = Right(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
COORDINATED = {0: ResourceType.GROUP, 1: ResourceType.TRANSACTIONAL_ID}
SHARE = 2


# ---- OffsetFetch


def offset_fetch(rights: Rights, request: OffsetFetchRequest) -> Work[Outcome]:
    describable = yield from rights.allowed(DESCRIBE_GROUP, [group.group_id for group in request.groups])
    kept: list[OffsetFetchRequestGroup] = []
    answers: dict[str, OffsetFetchResponseGroup] = {}
    hidden: dict[str, list[OffsetFetchResponseTopics]] = {}
    asks_for_all: set[str] = set()
    for group in request.groups:
        if group.group_id not in describable:
            answers[group.group_id] = OffsetFetchResponseGroup(
                group_id=group.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
            )
            continue
        kept.append(group)
        if group.topics is None:
            asks_for_all.add(group.group_id)
        else:
            hidden.setdefault(group.group_id, []).extend((yield from _take_hidden(rights, group)))
        yield
    if not kept:
        return refused(OffsetFetchResponse(groups=list(answers.values()))) if answers else PASSED
    request.groups = kept
    visible = _visible_offsets(rights, asks_for_all, hidden)
    return Outcome(finish=(visible, adding("groups", list(answers.values()))))


def _take_hidden(rights: Rights, group: OffsetFetchRequestGroup) -> Work[list[OffsetFetchResponseTopics]]:
    """Take the topics that the peer may not describe out of the request; their answers."""
    topics = group.topics or []
    names = [name_by_id(rights, topic) for topic in topics]
    describable = yield from rights.allowed(DESCRIBE_TOPIC, names)
    group.topics = [topic for topic, name in zip(topics, names, strict=True) if name in describable]
    return [
        _hidden_offsets(topic) for topic, name in zip(topics, names, strict=True) if name not in describable
    ]


def _hidden_offsets(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, error_code=DENIED)
            for index in topic.partition_indexes
        ],
    )


def _visible_offsets(
    rights: Rights, asks_for_all: set[str], hidden: dict[str, list[OffsetFetchResponseTopics]]
) -> Finish:
    def finish(response: Any) -> Work[None]:
        for group in response.groups:
            if group.error_code:
                continue
            if group.group_id in asks_for_all:
                names = [topic.name for topic in group.topics]
                visible = yield from rights.allowed(DESCRIBE_TOPIC, names)
                group.topics = [topic for topic in group.topics if topic.name in visible]
            group.topics += hidden.get(group.group_id, ())
            yield

    return finish


# ---- FindCoordinator


def find_coordinator(rights: Rights, request: FindCoordinatorRequest) -> Work[Outcome]:
    kind = COORDINATED.get(request.key_type)
    keys = request.coordinator_keys
    if kind is None:
        if request.key_type != SHARE or rights.may(*CLUSTER_ACTION):
            return PASSED
        answers = [_no_coordinator(key, ErrorCode.CLUSTER_AUTHORIZATION_FAILED) for key in keys]
        return refused(FindCoordinatorResponse(coordinators=answers))
    describable = yield from rights.allowed(Right(Operation.DESCRIBE, kind), keys)
    elements = Elements("coordinator_keys", None, FindCoordinatorResponse, "coordinators", _no_coordinator)
    code = REFUSALS[kind]
    return (yield from split(request, elements, [key in describable for key in keys], lambda _: code))


def _no_coordinator(key: str, code: ErrorCode) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=code.text)


# ---- groups of KIP-848


def subscribed_topics(rights: Rights, request: ConsumerGroupHeartbeatRequest) -> Work[Outcome]:
    """A member that subscribes to a topic must be allowed to describe it. What a pattern finds is limited by
    the coordinator."""
    names: Iterable[str | None] = request.subscribed_topic_names or ()
    allowed = yield from rights.allowed(DESCRIBE_TOPIC, names)
    if allowed.issuperset(names):
        return PASSED
    return refused(ConsumerGroupHeartbeatResponse(error_code=DENIED, error_message=DENIED.text))


def assigned_topics(rights: Rights, request: Any) -> Work[Outcome]:
    """A group is described only to those who may describe all topics that its members have."""
    yield from ()

    def finish(response: Any) -> Work[None]:
        for place, group in enumerate(response.groups):
            names = [name for member in group.members for name in _topics_of(member)]
            allowed = yield from rights.allowed(DESCRIBE_TOPIC, names)
            if not allowed.issuperset(names):
                response.groups[place] = DescribedGroup(
                    group_id=group.group_id,
                    error_code=DENIED,
                    error_message="the group has topics that this user may not describe",
                )
            yield

    return Outcome(finish=(finish,))


def _topics_of(member: Member) -> Iterable[str]:
    for assignment in (member.assignment, member.target_assignment):
        for topic in assignment.topic_partitions:
            yield topic.topic_name
