"""The assignors of a classic group: range, roundrobin, sticky and cooperative-sticky. No I/O here.

The leader of the group applies one of them to the subscriptions of all members. A custom assignor is an
object with the same attributes and methods as these."""

import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from barnabas.client.errors import ConfigError
from barnabas.client.types import TopicPartition
from barnabas.wire.codec import WireError, decode_message, encode_message
from barnabas.wire.messages import consumer_protocol_assignment as assignment_format

_GENERATION = struct.Struct(">i")
_NO_USER_DATA = b"\xff\xff\xff\xff"


class Subscription(NamedTuple):
    """The topics that a member subscribes to, and the partitions it had before."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    instance_id: str | None = None
    user_data: bytes | None = None


Plan = dict[str, list[TopicPartition]]


class Assignor(Protocol):
    """How the leader of a classic group assigns partitions to the members."""

    @property
    def name(self) -> str:
        """The name by which the members of a group agree on an assignor."""

    @property
    def is_cooperative(self) -> bool:
        """Whether members keep their partitions during a rebalance."""

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, Subscription]) -> Plan:
        """Partitions by member id. It gets the number of partitions of each topic, and the subscriptions by
        member id."""

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """What a member sends to the leader with its subscription."""


def _in_order(members: Mapping[str, Subscription]) -> list[str]:
    """Static members first, by group.instance.id, so that they keep their place in the order after a
    restart."""

    def place(member: str) -> tuple[bool, str]:
        instance_id = members[member].instance_id
        return instance_id is None, instance_id or member

    return sorted(members, key=place)


class RangeAssignor:
    """Each member gets a range of consecutive partitions of each topic; the first ones may get one more."""

    name = "range"
    is_cooperative = False

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, Subscription]) -> Plan:
        plan: Plan = {member: [] for member in members}
        order = _in_order(members)
        for topic in sorted(partitions):
            readers = [member for member in order if topic in members[member].topics]
            start = 0
            for index, member in enumerate(readers):
                each, more = divmod(partitions[topic], len(readers))
                end = start + each + (index < more)
                plan[member] += [TopicPartition(topic, partition) for partition in range(start, end)]
                start = end
        return plan

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return None


class RoundRobinAssignor:
    """Assigns all partitions in turn to the members; skips members that have not subscribed to the topic."""

    name = "roundrobin"
    is_cooperative = False

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, Subscription]) -> Plan:
        plan: Plan = {member: [] for member in members}
        order = _in_order(members)
        turn = 0
        for each in _all(partitions, members):
            while each.topic not in members[order[turn % len(order)]].topics:
                turn += 1
            plan[order[turn % len(order)]].append(each)
            turn += 1
        return plan

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return None


class StickyAssignor:
    """As even as the subscriptions allow, with as few moves as possible. Members revoke everything first."""

    name = "sticky"
    is_cooperative = False

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, Subscription]) -> Plan:
        return _sticky(partitions, {each: _with_history(member) for each, member in members.items()})

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """The partitions that this member had, in the format of Kafka's sticky assignor."""
        topics = [
            assignment_format.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(owned).items()
        ]
        message = assignment_format.ConsumerProtocolAssignment(assigned_partitions=topics)
        encoded = encode_message(message, 0, assignment_format.FLEXIBLE_FROM)
        return encoded[: -len(_NO_USER_DATA)] + _GENERATION.pack(generation)


class CooperativeStickyAssignor:
    """As sticky, but members keep the partitions that do not move. Those that move are revoked first and
    assigned in the next rebalance."""

    name = "cooperative-sticky"
    is_cooperative = True

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, Subscription]) -> Plan:
        plan = _sticky(partitions, members)
        owners = {each: member for member, subscription in members.items() for each in subscription.owned}
        for member, assigned in plan.items():
            plan[member] = [each for each in assigned if owners.get(each, member) == member]
        return plan

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return _GENERATION.pack(generation)


def by_topic(partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    indexes: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        indexes[topic].append(partition)
    return dict(indexes)


def _all(partitions: Mapping[str, int], members: Mapping[str, Subscription]) -> list[TopicPartition]:
    subscribed = {topic for subscription in members.values() for topic in subscription.topics}
    return [
        TopicPartition(topic, partition)
        for topic in sorted(subscribed & partitions.keys())
        for partition in range(partitions[topic])
    ]


def _with_history(member: Subscription) -> Subscription:
    """The member with the partitions named in its user data; data that cannot be decoded is ignored."""
    if not member.user_data or len(member.user_data) <= _GENERATION.size:
        return member
    try:
        had = decode_message(
            assignment_format.ConsumerProtocolAssignment,
            0,
            assignment_format.FLEXIBLE_FROM,
            member.user_data[: -_GENERATION.size] + _NO_USER_DATA,
        )
    except WireError:
        return member
    owned = tuple(
        TopicPartition(topic.topic, partition)
        for topic in had.assigned_partitions
        for partition in topic.partitions
    )
    (generation,) = _GENERATION.unpack(member.user_data[-_GENERATION.size :])
    return member._replace(owned=owned, generation=generation)


def _sticky(partitions: Mapping[str, int], members: Mapping[str, Subscription]) -> Plan:
    plan = _kept(partitions, members)
    assigned = {each for owned in plan.values() for each in owned}
    order = _in_order(members)
    for each in _all(partitions, members):
        if each not in assigned:
            readers = [member for member in order if each.topic in members[member].topics]
            plan[min(readers, key=lambda member: len(plan[member]))].append(each)
    _even_out(plan, members, order)
    return plan


def _kept(partitions: Mapping[str, int], members: Mapping[str, Subscription]) -> Plan:
    """The partitions that members had and may keep. If two claim the same one, the newer generation wins."""
    owners: dict[TopicPartition, str] = {}
    for member in _in_order(members):
        for each in members[member].owned:
            exists = each.partition < partitions.get(each.topic, 0) and each.topic in members[member].topics
            rival = owners.get(each)
            if exists and (rival is None or members[rival].generation < members[member].generation):
                owners[each] = member
    plan: Plan = {member: [] for member in members}
    for each, member in sorted(owners.items()):
        plan[member].append(each)
    return plan


def _even_out(plan: Plan, members: Mapping[str, Subscription], order: list[str]) -> None:
    """Move partitions as long as a move makes the counts of two members more even, so the loop ends.

    The member with the most partitions gives one first, so no partition has to move twice."""
    while True:
        for giver in sorted(order, key=lambda member: -len(plan[member])):
            if _give_one(giver, plan, members, order):
                break
        else:
            return


def _give_one(giver: str, plan: Plan, members: Mapping[str, Subscription], order: list[str]) -> bool:
    takers_of: dict[str, str] = {}
    for each in plan[giver]:
        if each.topic not in takers_of:
            takers = [member for member in order if each.topic in members[member].topics]
            takers_of[each.topic] = min(takers, key=lambda member: len(plan[member]))
        taker = takers_of[each.topic]
        if len(plan[taker]) + 1 < len(plan[giver]):
            plan[giver].remove(each)
            plan[taker].append(each)
            return True
    return False


_BUILT_IN: dict[str, type[Assignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
# Java's class names, so that a configuration written for the Java client works.
_JAVA = {f"org.apache.kafka.clients.consumer.{kind.__name__}": kind for kind in _BUILT_IN.values()}


def assignors_of(given: Sequence[object]) -> list[Assignor]:
    """The assignors that partition.assignment.strategy contains or names."""
    assignors: list[Assignor] = []
    for each in given:
        kind = (_BUILT_IN.get(each) or _JAVA.get(each)) if isinstance(each, str) else each
        if kind is None:
            raise ConfigError(
                f"partition.assignment.strategy has {each!r}; the known assignors are {', '.join(_BUILT_IN)}."
            )
        assignors.append(kind() if isinstance(kind, type) else kind)  # type: ignore[arg-type]
    if not assignors:
        raise ConfigError("partition.assignment.strategy must name at least one assignor.")
    return assignors
