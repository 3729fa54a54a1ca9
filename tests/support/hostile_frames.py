"""Bytes that no honest client sends: garbage, lengths that lie, and requests that are damaged."""

import random
import struct
from collections.abc import Collection, Iterator
from typing import Any, cast

from tests.wire.conftest import Sampler

from barnabas.broker.apis import ROWS
from barnabas.wire.apis import api_of
from barnabas.wire.codec import RequestHeader, encode_request
from barnabas.wire.message import Message
from barnabas.wire.messages.leave_group import MemberIdentity
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.offset_fetch import OffsetFetchRequestGroup

METADATA = 3
MB = 1024 * 1024
SERVED = [
    (key, version) for key, row in ROWS.items() for version in range(row.versions[0], row.versions[1] + 1)
]
GARBAGE = {
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls": bytes.fromhex("16030100f1010000ed0303") + bytes(230),
    "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
    "ones": b"\xff" * 1000,
    "lines": b"\n" * 1000,
}
BAD_SIZES = (-1, -(2**31), 0, 1, 7, 100 * MB + 1, 2**31 - 1)


def head(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, -1)


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag_bomb(count: int) -> bytes:
    """A Metadata request with very many tagged fields."""
    tags = varint(count) + b"".join(varint(tag) + b"\0" for tag in range(min(count, 200_000)))
    return framed(head(METADATA, 9) + tags + b"\x01\x00\x00\x00\0")


def shortened(request: Any, version: int) -> Any:
    """The old forms of some requests have room for only one element."""
    if isinstance(request, MetadataRequest) and request.topics:
        request.topics = [MetadataRequestTopic(name=topic.name) for topic in request.topics]
    key = api_key_of(request)
    if key == 10 and version < 4:
        request.coordinator_keys = ["one"]
    if key == 9 and version < 8:
        request.groups = [OffsetFetchRequestGroup(group_id="one")]
    if key == 13 and version < 3:
        request.members = [MemberIdentity(member_id="one")]
    return request


def api_key_of(request: Message) -> int:
    return next(key for key in ROWS if (api := api_of(key)) is not None and isinstance(request, api.request))


def damaged_frame(chance: random.Random, keys: Collection[int] | None = None) -> tuple[int, bytes]:
    """The API key and the frame of a request in which some bytes are changed, and often the end is missing.
    It is one of the APIs with these keys; None: any API."""
    key, version = chance.choice([served for served in SERVED if keys is None or served[0] in keys])
    api = api_of(key)
    assert api is not None
    message = shortened(Sampler(chance.choice(("full", "empty")), version).message(api.request), version)
    header = RequestHeader(key, version, 0, "raw-client")
    # A request never holds file slices, which is what a chunk may be besides bytes.
    frame = bytearray(b"".join(cast(list[bytes], encode_request(header, message)))[4:])
    for _ in range(chance.randint(1, 3)):
        frame[chance.randrange(4, len(frame))] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF))
    if chance.random() < 0.3:
        del frame[chance.randrange(8, len(frame)) :]
    return key, framed(bytes(frame))


def hostile_frames(chance: random.Random, keys: Collection[int]) -> Iterator[bytes]:
    """All kinds, without an end; damaged requests only of the APIs with these keys."""
    bombs = [tag_bomb(count) for count in (1001, 100_000)]
    sizes = [struct.pack(">i", size) for size in BAD_SIZES]
    while True:
        kind = chance.random()
        if kind < 0.5:
            yield damaged_frame(chance, keys)[1]
        elif kind < 0.7:
            yield chance.choice(list(GARBAGE.values()))
        elif kind < 0.9:
            yield chance.choice(sizes)
        elif kind < 0.99:
            yield chance.randbytes(chance.randint(1, 2000))
        else:
            yield chance.choice(bombs)
