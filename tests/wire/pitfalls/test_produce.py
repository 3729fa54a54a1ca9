"""Pitfalls 4, 16, 17: responses to a produce, refusals, and the parts of a batch that are rewritten."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from crc32c import crc32c
from tests.support.raw_calls import (
    FETCH,
    METADATA,
    PRODUCE,
    TIMESTAMP,
    Topic,
    batch_of,
    fetch_partition,
    fetch_request,
    list_offset,
    new_topic,
    produce_batch,
    produce_request,
)
from tests.support.raw_client import RawClient

from barnabas.errors import ErrorCode
from barnabas.records.batch import crc_is_valid, read_header
from barnabas.records.builder import read_records
from barnabas.wire.messages.metadata import MetadataRequest

VERSIONS = range(3, 14)
LATEST = -1
ATTRIBUTES_POSITION, MAX_TIMESTAMP_POSITION = 21, 35


def end_of(client: RawClient, topic: Topic) -> int:
    return list_offset(client, topic, LATEST).offset


def stored(client: RawClient, topic: Topic, offset: int = 0) -> Any:
    records = fetch_partition(client, topic, offset).records
    assert records is not None
    return records


# ---- pitfall 4


@pytest.mark.parametrize("version", VERSIONS)
def test_4_acks_0_has_no_response_at_all(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    client.send(PRODUCE, version, produce_request(topic, batch_of(b"silent"), acks=0))
    sent = client.send(METADATA, 9, MetadataRequest(topics=[]))
    answered, _ = client.receive(METADATA, 9)
    assert answered == sent
    assert end_of(client, topic) == 1


def test_4_an_error_with_acks_0_closes_the_connection(client: RawClient) -> None:
    nowhere = Topic("not-there", bytes(16))
    client.send(PRODUCE, 9, produce_request(nowhere, batch_of(b"lost"), acks=0))
    assert client.is_closed_by_peer()


def test_4_responses_come_in_the_order_of_the_requests(connect: Callable[[], RawClient]) -> None:
    """Some are slow: a waiting fetch, a batch that is validated in a thread, one without a response."""
    client = connect()
    topic = new_topic(client)
    parked = fetch_request(topic)
    parked.max_wait_ms, parked.min_bytes = 100, 1 << 20
    heavy = batch_of(*[bytes(1000)] * 20_000, compression=1)
    assert len(heavy) > 32 * 1024
    expected: list[tuple[int, int, int]] = []
    for _ in range(5):
        expected.append((METADATA, 9, client.send(METADATA, 9, MetadataRequest(topics=[]))))
        expected.append((PRODUCE, 9, client.send(PRODUCE, 9, produce_request(topic, heavy))))
        client.send(PRODUCE, 9, produce_request(topic, batch_of(b"silent"), acks=0))
        expected.append((PRODUCE, 3, client.send(PRODUCE, 3, produce_request(topic, batch_of(b"light")))))
        expected.append((FETCH, 12, client.send(FETCH, 12, parked)))
    offsets = []
    for key, version, correlation_id in expected:
        answered, response = client.receive(key, version)
        assert answered == correlation_id
        if key == PRODUCE:
            offsets.append(response.responses[0].partition_responses[0].base_offset)
    step = 20_000 + 1 + 1
    assert offsets == [base + add for base in range(0, 5 * step, step) for add in (0, 20_001)]


# ---- pitfall 16


def assert_refused(client: RawClient, topic: Topic, answer: Any, error: ErrorCode, end: int = 0) -> None:
    """An error has no offset and no time, and nothing was written."""
    assert answer.error_code == error
    assert (answer.base_offset, answer.log_append_time_ms, answer.log_start_offset) == (-1, -1, -1)
    assert end_of(client, topic) == end


@pytest.mark.parametrize("version", VERSIONS)
def test_16_success_has_offset_and_log_start(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    for expected in (0, 2):
        answer = produce_batch(client, topic, batch_of(b"a", b"b"), version=version)
        assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, expected, -1)
        assert answer.log_start_offset == (0 if version >= 5 else -1)
        assert (answer.record_errors, answer.error_message) == ([], None)


@pytest.mark.parametrize("version", VERSIONS)
def test_16_an_unknown_topic(client: RawClient, version: int) -> None:
    answer = produce_batch(client, Topic("not-there", b"\x01" * 16), batch_of(b"lost"), version=version)
    by_id = version >= 13
    assert answer.error_code == (
        ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert (answer.base_offset, answer.log_append_time_ms, answer.log_start_offset) == (-1, -1, -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_16_records_without_a_key_on_a_compacted_topic(client: RawClient, version: int) -> None:
    topic = new_topic(client, cleanup_policy="compact")
    answer = produce_batch(client, topic, batch_of(b"a", b"b", key=None), version=version)
    assert_refused(client, topic, answer, ErrorCode.INVALID_RECORD)
    if version >= 8:
        assert [error.batch_index for error in answer.record_errors] == [0, 1]
        assert all(error.batch_index_error_message for error in answer.record_errors)
        assert answer.error_message
    else:
        assert answer.record_errors == []


def test_16_one_bad_partition_does_not_harm_the_others(client: RawClient) -> None:
    compacted, plain = new_topic(client, cleanup_policy="compact"), new_topic(client)
    request = produce_request(compacted, batch_of(b"a", key=None))
    request.topic_data += produce_request(plain, batch_of(b"a")).topic_data
    response = client.call(PRODUCE, 9, request)
    errors = [topic.partition_responses[0].error_code for topic in response.responses]
    assert errors == [ErrorCode.INVALID_RECORD, ErrorCode.NONE]
    assert end_of(client, plain) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_16_a_batch_over_the_limit_of_the_topic(client: RawClient, version: int) -> None:
    topic = new_topic(client, max_message_bytes="1000")
    answer = produce_batch(client, topic, batch_of(b"x" * 1000), version=version)
    assert_refused(client, topic, answer, ErrorCode.MESSAGE_TOO_LARGE)


@pytest.mark.parametrize("version", VERSIONS)
def test_16_zstd_needs_produce_7(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    answer = produce_batch(client, topic, batch_of(b"a" * 100, compression=4), version=version)
    if version >= 7:
        assert (answer.error_code, answer.base_offset) == (0, 0)
    else:
        assert_refused(client, topic, answer, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


@pytest.mark.parametrize("version", range(4, 19))
def test_16_a_zstd_topic_needs_fetch_10(client: RawClient, version: int) -> None:
    topic = new_topic(client, compression_type="zstd")
    produce_batch(client, topic, batch_of(b"a" * 100))
    partition = fetch_partition(client, topic, version=version)
    if version >= 10:
        assert partition.records is not None
        assert read_header(partition.records).compression == 4
    else:
        assert partition.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_16_every_flipped_bit_is_corrupt_and_nothing_is_written(client: RawClient) -> None:
    topic = new_topic(client)
    batch = batch_of(b"some value", b"another one")
    for position in range(ATTRIBUTES_POSITION, len(batch)):
        damaged = bytearray(batch)
        # Not a low bit: codec and transactional flag, in the attributes, are refused before the CRC.
        damaged[position] ^= 0x80
        answer = produce_batch(client, topic, bytes(damaged))
        assert answer.error_code == ErrorCode.CORRUPT_MESSAGE, position
    assert end_of(client, topic) == 0
    assert bytes(stored(client, topic)) == b""


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (batch_of(b"a") + batch_of(b"b"), ErrorCode.INVALID_RECORD),
        (batch_of(b"a")[:-1], ErrorCode.INVALID_RECORD),
        (batch_of(b"a", control=True), ErrorCode.INVALID_RECORD),
        (batch_of(b"a", timestamp=1 << 60), ErrorCode.INVALID_TIMESTAMP),
    ],
    ids=["null", "empty", "two batches", "cut off", "control", "far future"],
)
def test_16_anything_but_one_valid_batch_is_refused(
    client: RawClient, records: bytes | None, error: ErrorCode
) -> None:
    topic = new_topic(client)
    assert_refused(client, topic, produce_batch(client, topic, records), error)


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_16_other_values_of_acks_are_refused(client: RawClient, acks: int) -> None:
    topic = new_topic(client)
    answer = produce_batch(client, topic, batch_of(b"a"), acks=acks)
    assert_refused(client, topic, answer, ErrorCode.INVALID_REQUIRED_ACKS)


def test_16_a_topic_with_one_replica_needs_no_more_in_sync(client: RawClient) -> None:
    """Kafka limits min.insync.replicas to the number of replicas."""
    topic = new_topic(client, min_insync_replicas="2")
    for acks in (-1, 1):
        assert produce_batch(client, topic, batch_of(b"a"), acks=acks).error_code == 0


# ---- pitfall 17


@pytest.mark.parametrize("compression", [0, 1, 2, 3, 4])
def test_17_base_offset_and_epoch_are_rewritten_and_the_crc_holds(
    client: RawClient, compression: int
) -> None:
    topic = new_topic(client)
    batch = batch_of(b"a", b"b", compression=compression, leader_epoch=77)
    for _ in range(2):
        produce_batch(client, topic, batch)
    second = stored(client, topic, 2)
    header = read_header(second)
    assert (header.base_offset, header.leader_epoch) == (2, 0)
    assert crc_is_valid(second, 0, header.size)
    # The CRC and everything that it covers are unchanged.
    assert bytes(second[17 : header.size]) == batch[17:]


@pytest.mark.parametrize("compression", [0, 1, 2, 3, 4])
def test_17_log_append_time_recomputes_the_crc(client: RawClient, compression: int) -> None:
    topic = new_topic(client, message_timestamp_type="LogAppendTime")
    answer = produce_batch(client, topic, batch_of(b"a", b"b", compression=compression))
    assert answer.log_append_time_ms > TIMESTAMP
    batch = stored(client, topic)
    header = read_header(batch)
    assert header.is_log_append_time
    assert header.max_timestamp == answer.log_append_time_ms
    assert crc_is_valid(batch, 0, header.size)
    assert {record.timestamp for record in read_records(batch)} == {answer.log_append_time_ms}


def test_17_a_wrong_max_timestamp_is_corrected(client: RawClient) -> None:
    topic = new_topic(client)
    batch = bytearray(batch_of(b"a", b"b"))
    struct.pack_into(">q", batch, MAX_TIMESTAMP_POSITION, 5)
    struct.pack_into(">I", batch, 17, crc32c(batch[ATTRIBUTES_POSITION:]))
    assert produce_batch(client, topic, bytes(batch)).error_code == 0
    header = read_header(stored(client, topic))
    assert header.max_timestamp == TIMESTAMP + 1
    assert crc_is_valid(stored(client, topic), 0, header.size)


@pytest.mark.parametrize(
    ("name", "codec"), [("uncompressed", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)]
)
def test_17_a_topic_with_a_codec_of_its_own_recompresses(client: RawClient, name: str, codec: int) -> None:
    topic = new_topic(client, compression_type=name)
    for compression in range(5):
        produce_batch(client, topic, batch_of(b"a" * 50, b"b" * 50, compression=compression))
    for offset in range(0, 10, 2):
        batch = stored(client, topic, offset)
        header = read_header(batch)
        assert (header.base_offset, header.compression) == (offset, codec)
        assert crc_is_valid(batch, 0, header.size)
        assert [record.value for record in read_records(batch)] == [b"a" * 50, b"b" * 50]
