"""What the metadata of consumers says about their topics. To the protocol it is opaque; we look all the same,
because offsets of a topic that somebody reads must not expire."""

import struct
from collections.abc import Iterable

from barnabas.groups.classic.members import Member
from barnabas.wire.codec import WireError, decode_message
from barnabas.wire.message import NEVER
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

_VERSION = struct.Struct(">h")


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
