"""The answer of ConsumerGroupDescribe."""

from barnabas.groups.assignors import Assignment
from barnabas.groups.consumer.members import Member
from barnabas.groups.consumer.state import ConsumerState
from barnabas.groups.consumer.target_assignment import preferred_assignor
from barnabas.groups.settings import TopicsView
from barnabas.wire.messages import consumer_group_describe as wire

_CLASSIC, _CONSUMER = 0, 1


def described(
    state: ConsumerState, state_name: str, default_assignor: str, topics: TopicsView
) -> wire.DescribedGroup:
    return wire.DescribedGroup(
        group_id=state.group_id,
        group_state=state_name,
        group_epoch=state.epoch,
        assignment_epoch=state.target_epoch,
        assignor_name=preferred_assignor(state.members.values(), default_assignor),
        members=[_member(member, state.share(member), topics) for member in state.members.values()],
    )


def _member(member: Member, target: Assignment, topics: TopicsView) -> wire.Member:
    return wire.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex or "",
        assignment=wire.Assignment(topic_partitions=_listed(_held(member), topics)),
        target_assignment=wire.Assignment(topic_partitions=_listed(target, topics)),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _held(member: Member) -> Assignment:
    """Includes partitions that the member has not revoked yet: no other member has them before that."""
    return {
        topic: member.assigned.get(topic, frozenset()) | member.revoking.get(topic, frozenset())
        for topic in member.assigned.keys() | member.revoking.keys()
    }


def _listed(assignment: Assignment, topics: TopicsView) -> list[wire.TopicPartitions]:
    listed = []
    for topic_id, partitions in assignment.items():
        name = topics.topic_name(topic_id)
        # A deleted topic has no name. The next target will not include it.
        if name is not None:
            listed.append(
                wire.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(partitions))
            )
    return sorted(listed, key=lambda topic: topic.topic_name)
