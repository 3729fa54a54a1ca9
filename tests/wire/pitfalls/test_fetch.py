"""Pitfall 5: what a fetch returns, how much of it, and when."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.raw_calls import (
    FETCH,
    Topic,
    batch_of,
    fetch_partition,
    fetch_request,
    new_topic,
    produce_batch,
)
from tests.support.raw_client import RawClient

from barnabas.errors import ErrorCode
from barnabas.records.batch import iter_headers
from barnabas.records.builder import read_records
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.fetch import ReplicaState

VERSIONS = range(4, 19)
# One of each kind: oldest, sessions, zstd, flexible, topic ids, newest.
SOME_VERSIONS = (4, 7, 10, 12, 13, 18)
DELETE_TOPICS = 20
# Longer than a connection waits for a response: a fetch that is answered was woken.
FOREVER_MS = 600_000


def offsets_of(records: Any) -> list[int]:
    """The offsets of all complete batches; a batch that is cut off at the end is ignored."""
    return [
        record.offset
        for position, header in iter_headers(records)
        for record in read_records(records[position : position + header.size])
    ]


def only(response: Any) -> Any:
    ((partition,),) = [topic.partitions for topic in response.responses]
    return partition


@pytest.fixture
def topic(client: RawClient) -> Topic:
    """Two batches: offsets 0 to 4 and 5 to 9."""
    topic = new_topic(client)
    for _ in range(2):
        assert produce_batch(client, topic, batch_of(*[b"x" * 100] * 5)).error_code == 0
    return topic


@pytest.mark.parametrize("version", VERSIONS)
def test_5_an_offset_inside_a_batch_returns_the_whole_batch(
    client: RawClient, topic: Topic, version: int
) -> None:
    assert offsets_of(fetch_partition(client, topic, 3, version=version).records) == list(range(10))
    assert offsets_of(fetch_partition(client, topic, 7, version=version).records) == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("compression", [0, 1, 2, 3, 4])
def test_5_a_compressed_batch_is_complete_too(client: RawClient, compression: int) -> None:
    topic = new_topic(client)
    produce_batch(client, topic, batch_of(b"a", b"b", b"c", compression=compression))
    assert offsets_of(fetch_partition(client, topic, 2).records) == [0, 1, 2]


@pytest.mark.parametrize("version", SOME_VERSIONS)
@pytest.mark.parametrize(("partition_max_bytes", "max_bytes"), [(1, 1 << 20), (1 << 20, 1), (0, 0), (-5, -5)])
def test_5_the_first_batch_comes_even_when_it_is_over_the_limits(
    client: RawClient, topic: Topic, version: int, partition_max_bytes: int, max_bytes: int
) -> None:
    """KIP-74: the batch after it is not returned."""
    request = fetch_request(topic, partition_max_bytes=partition_max_bytes)
    request.max_bytes = max_bytes
    partition = only(client.call(FETCH, version, request))
    assert offsets_of(partition.records) == [0, 1, 2, 3, 4]


def test_5_only_the_first_partition_may_be_over_the_limit(client: RawClient) -> None:
    topic = new_topic(client, partitions=2)
    for partition in (0, 1):
        produce_batch(client, topic, batch_of(b"x" * 100), partition=partition)
    request = fetch_request(topic)
    request.topics[0].partitions += fetch_request(topic, partition=1).topics[0].partitions
    request.max_bytes = 10
    first, second = client.call(FETCH, 12, request).responses[0].partitions
    assert offsets_of(first.records) == [0]
    assert (second.error_code, bytes(second.records), second.high_watermark) == (0, b"", 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_5_no_records_are_empty_and_not_null(client: RawClient, topic: Topic, version: int) -> None:
    at_end = fetch_partition(client, topic, 10, version=version)
    beyond = fetch_partition(client, topic, 11, version=version)
    assert at_end.records is not None
    assert (at_end.error_code, bytes(at_end.records)) == (0, b"")
    assert beyond.records is not None
    assert (beyond.error_code, bytes(beyond.records)) == (ErrorCode.OFFSET_OUT_OF_RANGE, b"")
    assert (beyond.high_watermark, beyond.last_stable_offset) == (-1, -1)


def test_5_records_of_an_unknown_partition_are_empty_and_not_null(client: RawClient, topic: Topic) -> None:
    missing = fetch_partition(client, topic, partition=1)
    assert missing.records is not None
    assert (missing.error_code, bytes(missing.records)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, b"")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("isolation_level", "aborted"), [(0, None), (1, [])])
def test_5_high_watermark_stable_offset_and_aborted_transactions(
    client: RawClient, topic: Topic, version: int, isolation_level: int, aborted: list[Any] | None
) -> None:
    request = fetch_request(topic)
    request.isolation_level = isolation_level
    partition = only(client.call(FETCH, version, request))
    assert (partition.high_watermark, partition.last_stable_offset) == (10, 10)
    assert partition.log_start_offset == (0 if version >= 5 else -1)
    assert partition.aborted_transactions == aborted
    assert partition.preferred_read_replica == -1
    assert offsets_of(partition.records) == list(range(10))


@pytest.mark.parametrize("version", SOME_VERSIONS)
def test_5_a_fetch_waits_and_is_woken_by_a_produce_of_another_connection(
    connect: Callable[[], RawClient], version: int
) -> None:
    reader, writer = connect(), connect()
    topic = new_topic(writer)
    request = fetch_request(topic)
    request.max_wait_ms = FOREVER_MS
    reader.send(FETCH, version, request)
    assert reader.is_silent(0.05)
    produce_batch(writer, topic, batch_of(b"news"))
    _, response = reader.receive(FETCH, version)
    assert offsets_of(only(response).records) == [0]
    assert only(response).high_watermark == 1


def test_5_a_fetch_is_not_woken_before_min_bytes(connect: Callable[[], RawClient]) -> None:
    reader, writer = connect(), connect()
    topic = new_topic(writer)
    request = fetch_request(topic)
    request.max_wait_ms, request.min_bytes = FOREVER_MS, 1000
    reader.send(FETCH, 12, request)
    for _ in range(3):
        produce_batch(writer, topic, batch_of(b"little"))
    assert reader.is_silent(0.1)
    produce_batch(writer, topic, batch_of(b"x" * 1000))
    _, response = reader.receive(FETCH, 12)
    assert offsets_of(only(response).records) == [0, 1, 2, 3]


def test_5_a_fetch_of_many_partitions_is_woken_by_any_of_them(connect: Callable[[], RawClient]) -> None:
    reader, writer = connect(), connect()
    topic = new_topic(writer, partitions=3)
    request = fetch_request(topic)
    for partition in (1, 2):
        request.topics[0].partitions += fetch_request(topic, partition=partition).topics[0].partitions
    request.max_wait_ms = FOREVER_MS
    reader.send(FETCH, 12, request)
    assert reader.is_silent(0.05)
    produce_batch(writer, topic, batch_of(b"news"), partition=2)
    _, response = reader.receive(FETCH, 12)
    assert [len(part.records) > 0 for part in response.responses[0].partitions] == [False, False, True]


def test_5_after_the_maximum_wait_the_fetch_returns_what_there_is(client: RawClient, topic: Topic) -> None:
    request = fetch_request(topic, 8)
    request.max_wait_ms, request.min_bytes = 50, 1 << 20
    assert offsets_of(only(client.call(FETCH, 12, request)).records) == [5, 6, 7, 8, 9]


def test_5_an_error_is_answered_at_once(client: RawClient, topic: Topic) -> None:
    request = fetch_request(topic, 99)
    request.max_wait_ms = FOREVER_MS
    assert only(client.call(FETCH, 12, request)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("version", "error"),
    [(12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (13, ErrorCode.UNKNOWN_TOPIC_ID)],
)
def test_5_a_waiting_fetch_is_answered_when_its_topic_is_deleted(
    connect: Callable[[], RawClient], version: int, error: ErrorCode
) -> None:
    reader, admin = connect(), connect()
    topic = new_topic(admin)
    request = fetch_request(topic)
    request.max_wait_ms = FOREVER_MS
    reader.send(FETCH, version, request)
    assert reader.is_silent(0.05)
    admin.call(DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)]))
    _, response = reader.receive(FETCH, version)
    assert only(response).error_code == error


@pytest.mark.parametrize("version", SOME_VERSIONS)
def test_5_a_partition_asked_for_twice_counts_once(client: RawClient, topic: Topic, version: int) -> None:
    request = fetch_request(topic, 0)
    request.topics = [*request.topics * 100, *fetch_request(topic, 5).topics]
    assert offsets_of(only(client.call(FETCH, version, request)).records) == [5, 6, 7, 8, 9]


def test_5_an_empty_fetch_is_answered_at_once(client: RawClient) -> None:
    request = fetch_request(Topic("", bytes(16)))
    request.topics, request.max_wait_ms = [], FOREVER_MS
    response = client.call(FETCH, 12, request)
    assert (response.error_code, response.responses) == (0, [])


@pytest.mark.parametrize("version", [4, 14, 15, 18])
def test_5_a_client_that_claims_to_be_a_replica_gets_no_records(
    client: RawClient, topic: Topic, version: int
) -> None:
    request = fetch_request(topic)
    request.replica_id, request.replica_state = 1, ReplicaState(replica_id=1, replica_epoch=1)
    response = client.call(FETCH, version, request)
    assert not any(partition.records for topic in response.responses for partition in topic.partitions)
