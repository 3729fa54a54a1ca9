"""Small identifiers shared by every layer: topic partitions, topic ids, topic names."""

import base64
import binascii
import re
import secrets
from typing import NamedTuple, TypeAlias

# A topic id is its 16 bytes, as on the wire; printed as Kafka prints it, in url-safe base64 without padding.
Uuid: TypeAlias = bytes
"""The id of a topic."""
ZERO_UUID: Uuid = bytes(16)
METADATA_TOPIC_ID: Uuid = bytes(15) + b"\x01"

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
# Topics that only coordinators write to. The last one belongs to share groups, which are not served yet.
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state"})

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
TOPIC_NAME_LENGTH_MAX = 249


class TopicPartition(NamedTuple):
    """A partition of a topic; printed as orders-0."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def random_uuid() -> Uuid:
    """A fresh id that does not start with a dash: Kafka's tools would take that for an option."""
    while True:
        # Version 4 bits as java.util.UUID sets them, so that foreign tools see a regular UUID.
        raw = bytearray(secrets.token_bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        if not uuid_to_string(bytes(raw)).startswith("-"):
            return bytes(raw)


def uuid_to_string(uuid: Uuid) -> str:
    return base64.urlsafe_b64encode(uuid).decode().rstrip("=")


def uuid_from_string(text: str) -> Uuid:
    try:
        raw = base64.urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not a topic id: 22 characters of url-safe base64 are expected")
    return raw


def topic_name_problem(name: str) -> str | None:
    """Why `name` cannot be a topic's name, or None when it can."""
    if not name:
        return "the empty string is not a topic name"
    if name in (".", ".."):
        return f"a topic cannot be called {name!r}"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return f"the topic name is {len(name)} characters long; at most {TOPIC_NAME_LENGTH_MAX} are allowed"
    if not _LEGAL_NAME.fullmatch(name):
        return f"topic name {name!r} has characters other than letters, digits, '.', '_' and '-'"
    return None
