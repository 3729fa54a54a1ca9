"""The bytes that consumers of the classic protocol send in JoinGroup and get in SyncGroup.

Both begin with their version (int16). An unknown newer version is read as the newest known one: each version
only adds fields at the end. The group protocol does not depend on these bytes, but the coordinator reads them
to know which topics are in use, and to convert a group."""

import struct
from collections.abc import Iterable

from barnabas.groups.assignors import Assignment
from barnabas.groups.classic.members import Member
from barnabas.groups.settings import TopicsView
from barnabas.ids import Uuid
from barnabas.wire.codec import WireError, decode_message, encode_message
from barnabas.wire.message import NEVER
from barnabas.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
)
from barnabas.wire.messages.consumer_protocol_assignment import (
    TopicPartition as AssignedTopic,
)
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.messages.consumer_protocol_subscription import TopicPartition as OwnedTopic

_VERSION = struct.Struct(">h")
_NEWEST = 3


def version_of(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise WireError("it is too short: it must begin with a version")
    version = int(_VERSION.unpack_from(data)[0])
    if version < 0:
        raise WireError(f"version {version} is negative")
    return min(version, _NEWEST)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Raises WireError."""
    return decode_message(ConsumerProtocolSubscription, version_of(data), NEVER, data[_VERSION.size :])


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Raises WireError. No bytes mean that the member has no assignment yet."""
    if not data:
        return ConsumerProtocolAssignment()
    return decode_message(ConsumerProtocolAssignment, version_of(data), NEVER, data[_VERSION.size :])


def write_assignment(assignment: Assignment, version: int, topics: TopicsView) -> bytes:
    listed = []
    for topic_id, partitions in assignment.items():
        name = topics.topic_name(topic_id)
        if name is not None:
            listed.append(AssignedTopic(topic=name, partitions=sorted(partitions)))
    listed.sort(key=lambda topic: topic.topic)
    message = ConsumerProtocolAssignment(assigned_partitions=listed)
    return _VERSION.pack(version) + encode_message(message, version, NEVER)


def by_topic_id(listed: list[AssignedTopic] | list[OwnedTopic], topics: TopicsView) -> Assignment:
    """The partitions by topic id; topics that do not exist are left out."""
    assignment: dict[Uuid, frozenset[int]] = {}
    for each in listed:
        topic_id = topics.topic_id(each.topic)
        if topic_id is not None and each.partitions:
            assignment[topic_id] = assignment.get(topic_id, frozenset()) | frozenset(each.partitions)
    return assignment


def topics_of(members: Iterable[Member], protocol_name: str) -> frozenset[str] | None:
    """All topics that the members read, or None if a subscription cannot be read."""
    topics: set[str] = set()
    try:
        for member in members:
            topics.update(_subscribed(member.metadata(protocol_name)))
    except WireError:
        return None
    return frozenset(topics)


def _subscribed(metadata: bytes) -> list[str]:
    """Every version begins with the fields of version 0, so they can all be read as version 0."""
    if len(metadata) < _VERSION.size:
        raise WireError("a subscription must begin with its version")
    return decode_message(ConsumerProtocolSubscription, 0, NEVER, metadata[_VERSION.size :]).topics
