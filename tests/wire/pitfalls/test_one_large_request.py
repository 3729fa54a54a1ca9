"""Pitfall 23: expensive work does not run in the event loop, so a large request does not block others."""

import zlib
from collections.abc import Callable

import pytest
from tests.support.raw_calls import PRODUCE, Topic, batch_of, fetch_partition, new_topic, produce_request
from tests.support.raw_client import RawClient

from barnabas.records.batch import BatchHeader, read_header
from barnabas.records.builder import build_batch, seal
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.produce import PartitionProduceData

API_VERSIONS, GZIP = 18, 1
RECORD_BYTES = 50 * 1024 * 1024
# Validated one after the other: together they take hundreds of times as long as a light request.
PARTITIONS = 8


def answered_meanwhile(heavy: RawClient, light: RawClient) -> int:
    """How many requests of one connection are answered before the other gets its response."""
    count = 0
    while heavy.is_silent(0.001):
        assert light.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
        count += 1
    return count


@pytest.fixture(scope="module")
def heavy_batch() -> bytes:
    return batch_of(bytes(RECORD_BYTES), compression=GZIP, compression_level=1)


def test_23_others_are_answered_while_a_large_batch_is_decompressed(
    connect: Callable[[], RawClient], heavy_batch: bytes
) -> None:
    heavy, light = connect(), connect()
    topic = new_topic(heavy, partitions=PARTITIONS)
    request = produce_request(topic, heavy_batch)
    request.topic_data[0].partition_data = [
        PartitionProduceData(index=index, records=memoryview(heavy_batch)) for index in range(PARTITIONS)
    ]
    heavy.send(PRODUCE, 9, request)
    assert answered_meanwhile(heavy, light) >= 3
    _, response = heavy.receive(PRODUCE, 9)
    assert [part.error_code for part in response.responses[0].partition_responses] == [0] * PARTITIONS


def test_23_others_are_answered_while_a_frame_of_100_mb_arrives(connect: Callable[[], RawClient]) -> None:
    """Compressed with level 0, so that all bytes are sent; then it is validated and can be read."""
    heavy, light = connect(), connect()
    topic = new_topic(heavy, max_message_bytes=str(100 * 1024 * 1024))
    plain = bytes(build_batch([(1, b"key", bytes(90 * 1024 * 1024), ())]))
    header: BatchHeader = read_header(plain)
    squeezer = zlib.compressobj(0, zlib.DEFLATED, 31)
    packed = squeezer.compress(plain[61:]) + squeezer.flush()
    batch = bytes(seal(header._replace(attributes=GZIP), packed))
    frame = heavy.encode(PRODUCE, 9, produce_request(topic, batch))
    half = len(frame) // 2
    heavy.send_bytes(frame[:half])
    for _ in range(10):
        assert light.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
    heavy.send_bytes(frame[half:])
    _, response = heavy.receive(PRODUCE, 9)
    assert response.responses[0].partition_responses[0].error_code == 0
    assert is_stored(light, topic, len(batch))


def is_stored(client: RawClient, topic: Topic, size: int) -> bool:
    records = fetch_partition(client, topic).records
    return records is not None and len(records) == size
