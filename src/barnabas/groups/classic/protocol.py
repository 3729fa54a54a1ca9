"""The bytes that consumers of the classic protocol put into JoinGroup and find in SyncGroup.

Both forms start with their version (int16). A newer version than we know is read as the newest we know: each
only adds fields at the end."""

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
        raise WireError("it is too short to have a version")
    version = int(_VERSION.unpack_from(data)[0])
    if version < 0:
        raise WireError(f"version {version} is below 0")
    return min(version, _NEWEST)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Raises WireError."""
    return decode_message(ConsumerProtocolSubscription, version_of(data), NEVER, data[_VERSION.size :])


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Raises WireError. No bytes at all are an empty assignment: the member has not had one."""
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
    """Partitions of topics that exist."""
    found: dict[Uuid, frozenset[int]] = {}
    for each in listed:
        topic_id = topics.topic_id(each.topic)
        if topic_id is not None and each.partitions:
            found[topic_id] = found.get(topic_id, frozenset()) | frozenset(each.partitions)
    return found


def topics_of(members: Iterable[Member], protocol_name: str) -> frozenset[str] | None:
    """All topics that the members read, or None if one of them cannot be understood."""
    topics: set[str] = set()
    try:
        for member in members:
            topics.update(_subscribed(member.metadata(protocol_name)))
    except WireError:
        return None
    return frozenset(topics)


def _subscribed(metadata: bytes) -> list[str]:
    """Every version begins with the fields of version 0, so that one reads them all."""
    if len(metadata) < _VERSION.size:
        raise WireError("a subscription begins with its version")
    return decode_message(ConsumerProtocolSubscription, 0, NEVER, metadata[_VERSION.size :]).topics
