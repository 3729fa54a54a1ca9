"""Hostile bytes for a running broker: they close their own connection and have no other effect.

The broker is a separate process, so that its memory can be measured and its output read: a frame that causes
a traceback is a defect even if the client only sees a closed connection."""

import random
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import cramjam
import pytest
from tests.support.hostile_frames import (
    BAD_SIZES,
    GARBAGE,
    MB,
    METADATA,
    SERVED,
    damaged_frame,
    framed,
    head,
    shortened,
    varint,
)
from tests.support.raw_calls import PRODUCE, batch_of, new_topic, produce_batch, produce_request
from tests.support.raw_client import RawClient

from barnabas.broker.server import API_KEYS_MAX
from barnabas.errors import ErrorCode
from barnabas.records.batch import read_header
from barnabas.records.builder import seal
from barnabas.records.compression import GZIP, LZ4, SNAPPY, compress
from barnabas.testing import Broker
from barnabas.wire.apis import api_of
from barnabas.wire.codec import encode_message
from barnabas.wire.message import Message
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

API_VERSIONS, FETCH = 18, 1
Sample = Callable[[type[Message], int, str], Message]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(subprocess=True) as broker:
        yield broker
        assert "Traceback" not in broker.output()
        assert " failed" not in broker.output()
        # All are counted, but logged once for each host and API key: a scanner must not fill the disk.
        assert broker.output().count("closed a connection from 127.0.0.1") <= API_KEYS_MAX + 2


@pytest.fixture
def connect(broker: Broker) -> Iterator[Callable[[], RawClient]]:
    clients: list[RawClient] = []

    def connect() -> RawClient:
        clients.append(RawClient("127.0.0.1", broker.port))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def client(connect: Callable[[], RawClient]) -> RawClient:
    return connect()


@pytest.fixture(autouse=True)
def bystander(broker: Broker) -> Iterator[RawClient]:
    """Another connection, which must work before and after the test."""
    with RawClient("127.0.0.1", broker.port) as client:
        assert client.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
        yield client
        assert client.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0


def memory_of(broker: Broker, what: str = "VmRSS") -> int:
    """In bytes; VmHWM is the peak since `forget_peak`."""
    for line in Path(f"/proc/{broker.pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {what} in the status of process {broker.pid}")


def forget_peak(broker: Broker) -> None:
    Path(f"/proc/{broker.pid}/clear_refs").write_text("5")


def is_flexible(key: int, version: int) -> bool:
    api = api_of(key)
    assert api is not None
    return api.is_flexible(version)


# ---- item 1: the size of a frame


@pytest.mark.parametrize("size", BAD_SIZES)
def test_a_size_out_of_bounds_closes_at_once(client: RawClient, size: int) -> None:
    client.send_bytes(struct.pack(">i", size))
    assert client.is_closed_by_peer()


def test_a_frame_of_eight_bytes_has_an_incomplete_header(client: RawClient) -> None:
    client.send_bytes(framed(struct.pack(">hhi", API_VERSIONS, 0, 1)))
    assert client.is_closed_by_peer()


def test_announcing_a_large_frame_costs_no_memory(broker: Broker, connect: Callable[[], RawClient]) -> None:
    before = memory_of(broker)
    for _ in range(50):
        client = connect()
        for byte in struct.pack(">i", 100 * MB) + bytes(20):
            client.send_bytes(bytes([byte]))
    assert connect().call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
    assert memory_of(broker) - before < 20 * MB


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=list(GARBAGE))
def test_garbage_closes_the_connection(client: RawClient, garbage: bytes) -> None:
    client.send_bytes(garbage)
    assert client.is_closed_by_peer()


def test_a_frame_may_come_byte_by_byte(client: RawClient) -> None:
    for byte in client.encode(API_VERSIONS, 0, ApiVersionsRequest(), 5):
        client.send_bytes(bytes([byte]))
    correlation_id, response = client.receive(API_VERSIONS, 0)
    assert (correlation_id, response.error_code) == (5, 0)


# ---- item 2: lengths and varints


@pytest.mark.parametrize("version", [8, 12])
def test_a_string_of_32767_bytes_is_answered(client: RawClient, version: int) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32767)])
    (topic,) = client.call(METADATA, version, request).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_longer_string_closes_the_connection_in_flexible_versions_too(client: RawClient) -> None:
    """As in Kafka, although the length has room for more."""
    name = b"x" * 32768
    topics = b"\x02" + bytes.fromhex("818002") + name + b"\0"
    client.send_bytes(framed(head(METADATA, 9) + b"\0" + topics + bytes(3) + b"\0"))
    assert client.is_closed_by_peer()


@pytest.mark.parametrize(("key", "version"), SERVED, ids=lambda value: str(value))
def test_wrong_lengths_cost_no_memory(
    broker: Broker, connect: Callable[[], RawClient], sample: Sample, key: int, version: int
) -> None:
    """Positions of a valid request are replaced by the largest length; none of them costs memory."""
    api = api_of(key)
    assert api is not None
    body = encode_message(sample(api.request, version, "full"), version, api.flexible_from)
    huge = b"\xff\xff\xff\xff\x07" if api.is_flexible(version) else b"\x7f\xff\xff\xff"
    tags = b"\0" if api.is_flexible(version) else b""
    places = range(0, len(body), max(1, len(body) // 8))
    for place in places:
        client = connect()
        client.send_bytes(framed(head(key, version) + tags + body[:place] + huge))
        finish(client, key)
    assert memory_of(broker) < 300 * MB


def finish(client: RawClient, key: int) -> None:
    """Wait until the broker has processed a frame; a fetch or a produce may have no response."""
    client.is_closed_by_peer(0.05 if key in (PRODUCE, FETCH) else 5.0)
    client.close()


@pytest.mark.parametrize(
    "varint",
    [b"\xff" * 5, b"\xff" * 10, b"\x80" * 5 + b"\0", b"\x81\x80\x00", b"\xff\xff\xff\xff\x1f"],
    ids=lambda varint: varint.hex(),
)
def test_overlong_varints_are_refused(client: RawClient, varint: bytes) -> None:
    client.send_bytes(framed(head(METADATA, 9) + b"\0" + varint + bytes(20)))
    assert client.is_closed_by_peer()


# ---- item 3: tagged fields


@pytest.mark.parametrize("where", ["header", "body"])
@pytest.mark.parametrize("count", [1001, 100_000, 2**28, 2**32 - 1])
def test_bombs_of_tagged_fields_are_refused(client: RawClient, where: str, count: int) -> None:
    tags = varint(count) + b"".join(varint(tag) + b"\0" for tag in range(min(count, 200_000)))
    body = b"\x01\x00\x00\x00"
    data = tags + body + b"\0" if where == "header" else b"\0" + body + tags
    client.send_bytes(framed(head(METADATA, 9) + data))
    assert client.is_closed_by_peer()


def test_a_thousand_unknown_tags_are_skipped(client: RawClient) -> None:
    tags = varint(1000) + b"".join(varint(tag) + b"\x01x" for tag in range(1000))
    client.send_bytes(framed(head(METADATA, 9) + tags + b"\x01\x01\x00\x00" + tags))
    correlation_id, response = client.receive(METADATA, 9)
    assert (correlation_id, response.topics) == (1, [])


@pytest.mark.parametrize("tags", [b"\x02\x05\x00\x05\x00", b"\x02\x05\x00\x04\x00", b"\x01\x05\x7f"])
def test_tags_in_disorder_or_beyond_the_frame_are_refused(client: RawClient, tags: bytes) -> None:
    client.send_bytes(framed(head(METADATA, 9) + tags))
    assert client.is_closed_by_peer()


# ---- item 4: null where it is not allowed


@pytest.mark.parametrize(
    ("key", "version", "body"),
    [
        (METADATA, 0, b"\xff\xff\xff\xff"),
        (METADATA, 1, b"\0\0\0\x01\xff\xff"),
        (METADATA, 9, b"\x02\x00\x00\x00\x00\x00"),
        (METADATA, 1, b"\xff\xff\xff\xfe"),
        (19, 2, b"\xff\xff\xff\xff\0\0\0\0\0"),
        (19, 5, b"\x00\0\0\0\0\0\0"),
        (2, 1, struct.pack(">ii", -1, -1)),
        (FETCH, 4, struct.pack(">iiiibi", -1, 0, 0, 0, 0, -1)),
        (PRODUCE, 3, struct.pack(">hhii", -1, 1, 0, -1)),
    ],
)
def test_null_is_refused_in_fields_that_are_not_nullable(
    client: RawClient, key: int, version: int, body: bytes
) -> None:
    tags = b"\0" if is_flexible(key, version) else b""
    client.send_bytes(framed(head(key, version) + tags + body))
    assert client.is_closed_by_peer()


# ---- items 5 and 6: batches and what is in them


def test_many_records_in_few_bytes_are_refused(client: RawClient) -> None:
    topic = new_topic(client)
    header = read_header(batch_of(b"a"))
    for count in (2**31 - 1, 1000):
        lying = header._replace(count=count, last_offset_delta=count - 1)
        for codec in (0, 1, 4):
            payload = compress(codec, b"\x10\0\0\0\x01\x02a\0\0")
            batch = bytes(seal(lying._replace(attributes=codec), payload))
            assert produce_batch(client, topic, batch).error_code == ErrorCode.INVALID_RECORD


def bomb(codec: int, size: int) -> bytes:
    """`size` zeros in one large record, compressed: the smallest batch that expands to so much."""
    if codec == GZIP:
        squeezer = zlib.compressobj(9, zlib.DEFLATED, 31)
        chunk = bytes(16 * MB)
        return b"".join(squeezer.compress(chunk) for _ in range(size // len(chunk))) + squeezer.flush()
    if codec == SNAPPY:
        return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + _blocks(size)
    if codec == LZ4:
        return compress(LZ4, bytes(size))
    return bytes(cramjam.zstd.compress(bytes(size), level=3))


def _blocks(size: int) -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(8 * MB)))
    return (struct.pack(">i", len(block)) + block) * (size // (8 * MB))


@pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=["gzip", "snappy", "lz4", "zstd"])
def test_a_decompression_bomb_is_refused_within_bounds(broker: Broker, client: RawClient, codec: int) -> None:
    """More than the topic allows (64 MB, or 16 times max.message.bytes) is never allocated."""
    # Snappy compresses to 1/20 at best, so its bomb needs a topic with a larger limit.
    message_bytes, allowed = (16 * MB, 256 * MB) if codec == SNAPPY else (2 * MB, 64 * MB)
    topic = new_topic(client, max_message_bytes=str(message_bytes))
    batch = bytes(seal(read_header(batch_of(b"a", compression=codec)), bomb(codec, allowed + 64 * MB)))
    forget_peak(broker)
    before = memory_of(broker)
    answer = produce_batch(client, topic, batch)
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    # Python's zlib collects blocks and joins them at the end, so gzip needs twice the memory.
    times = 2 if codec == GZIP else 1
    assert memory_of(broker, "VmHWM") - before < times * allowed + 4 * len(batch) + 30 * MB


@pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=["gzip", "snappy", "lz4", "zstd"])
def test_compressed_garbage_is_corrupt(client: RawClient, codec: int) -> None:
    topic = new_topic(client)
    header = read_header(batch_of(b"a", compression=codec))
    chance = random.Random(codec)
    good = compress(codec, chance.randbytes(2000))
    for _ in range(200):
        broken = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        payload = bytes(broken[: chance.randrange(len(broken))])
        answer = produce_batch(client, topic, bytes(seal(header, payload)))
        assert answer.error_code in (
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.INVALID_RECORD,
            ErrorCode.MESSAGE_TOO_LARGE,
        )


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec(client: RawClient, codec: int) -> None:
    topic = new_topic(client)
    batch = bytes(seal(read_header(batch_of(b"a"))._replace(attributes=codec), b"whatever"))
    assert produce_batch(client, topic, batch).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


# ---- everything at once


@pytest.mark.parametrize("variant", ["full", "nulls", "empty", "extreme"])
def test_requests_with_strange_values_are_answered_or_refused(
    connect: Callable[[], RawClient], sample: Sample, variant: str
) -> None:
    """Valid requests that no real client sends: largest integers, names with umlauts, random ids."""
    for key, version in SERVED:
        api = api_of(key)
        assert api is not None
        client = connect()
        client.send(key, version, shortened(sample(api.request, version, variant), version))
        finish(client, key)


def test_random_damage_over_the_socket(connect: Callable[[], RawClient]) -> None:
    chance = random.Random(20260117)
    for _ in range(1500):
        key, frame = damaged_frame(chance)
        client = connect()
        client.send_bytes(frame)
        if chance.random() < 0.2:
            finish(client, key)
        client.close()


def test_damaged_batches_over_the_socket(client: RawClient) -> None:
    """Changes every byte of a produce request with a batch, one after the other."""
    topic = new_topic(client)
    chance = random.Random(7)
    batch = batch_of(b"value" * 10, b"more" * 10, compression=1)
    for place in range(len(batch)):
        damaged = bytearray(batch)
        damaged[place] ^= 1 << chance.randrange(8)
        request = produce_request(topic, bytes(damaged), acks=1)
        response = client.call(PRODUCE, 9, request)
        # The broker ignores the leader epoch of a client.
        is_ignored = 12 <= place < 16
        assert (response.responses[0].partition_responses[0].error_code == 0) == is_ignored, place
