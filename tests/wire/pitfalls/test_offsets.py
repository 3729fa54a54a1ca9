"""Pitfalls 8 and 14: leader epochs and ListOffsets, on a topic that two leader epochs have written."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.raw_calls import (
    FETCH,
    METADATA,
    TIMESTAMP,
    Topic,
    batch_of,
    fetch_partition,
    fetch_request,
    list_offset,
    new_topic,
    produce_batch,
)
from tests.support.raw_client import RawClient

from barnabas.config.values import BrokerConfig
from barnabas.errors import ErrorCode
from barnabas.metadata.brokers import fence_brokers
from barnabas.metadata.embedded import DIRECTORY_NAME, EmbeddedStore
from barnabas.metadata.follower import Follower
from barnabas.metadata.leader_rules import LeaderRules
from barnabas.records.batch import iter_headers
from barnabas.testing import Broker
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

DELETE_RECORDS, OFFSET_FOR_LEADER_EPOCH = 21, 23
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = range(-1, -7, -1)
LIST_VERSIONS = range(1, 12)
# Epoch 1 had no leader, so nothing was written in it.
OLD, LEADERLESS, CURRENT, FUTURE = range(4)
EPOCH_CHECKS = [
    (OLD, ErrorCode.FENCED_LEADER_EPOCH),
    (LEADERLESS, ErrorCode.FENCED_LEADER_EPOCH),
    (CURRENT, ErrorCode.NONE),
    (FUTURE, ErrorCode.UNKNOWN_LEADER_EPOCH),
    (-1, ErrorCode.NONE),
]


# ---- two epochs


async def raise_epochs(data_dir: Path, broker_id: int) -> None:
    """As after a lost session in a cluster: the broker leads again, in a new epoch."""
    store = await EmbeddedStore.open(data_dir / DIRECTORY_NAME)
    follower = Follower(store)
    await follower.start()
    leadership = await store.campaign(broker_id)
    rules = LeaderRules(BrokerConfig({"node.id": str(broker_id)}).topic_config)
    decision = fence_brokers(follower.image, {broker_id}, rules)
    await store.append(decision.records, follower.image.offset, leadership.epoch)
    follower.stop()
    await store.close()


@pytest.fixture(scope="module")
def two_epochs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RawClient, Topic, Topic]]:
    """A topic with offsets 0-2 of epoch OLD and 3-4 of CURRENT, and another that lost its first epoch."""
    data_dir = tmp_path_factory.mktemp("epochs")
    with Broker(data_dir=data_dir) as broker:
        with RawClient("127.0.0.1", broker.port) as client:
            both, cut = new_topic(client, name="both"), new_topic(client, name="cut")
            for topic in (both, cut):
                produce_batch(client, topic, batch_of(b"0", b"1", b"2"))
            (node,) = client.call(METADATA, 12, MetadataRequest(topics=[])).brokers
        broker.stop()
        asyncio.run(raise_epochs(data_dir, node.node_id))
        broker.restart()
        with RawClient("127.0.0.1", broker.port) as client:
            for topic in (both, cut):
                produce_batch(client, topic, batch_of(b"3", b"4", timestamp=TIMESTAMP + 100))
            deletions = [DeleteRecordsPartition(partition_index=0, offset=4)]
            request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="cut", partitions=deletions)])
            assert client.call(DELETE_RECORDS, 2, request).topics[0].partitions[0].low_watermark == 4
            yield client, both, cut


def epoch_end(client: RawClient, topic: Topic, epoch: int, version: int = 4, current: int = -1) -> Any:
    part = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic.name, partitions=[part])])
    return client.call(OFFSET_FOR_LEADER_EPOCH, version, request).topics[0].partitions[0]


@pytest.mark.parametrize("version", range(7, 14))
def test_8_metadata_has_the_current_epoch(two_epochs: Any, version: int) -> None:
    client, topic, _ = two_epochs
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic.name)])
    (answer,) = client.call(METADATA, version, request).topics
    assert answer.partitions[0].leader_epoch == CURRENT


@pytest.mark.parametrize("version", range(9, 19))
@pytest.mark.parametrize(("epoch", "error"), EPOCH_CHECKS)
def test_8_fetch_checks_the_current_epoch(two_epochs: Any, version: int, epoch: int, error: int) -> None:
    client, topic, _ = two_epochs
    request = fetch_request(topic)
    request.topics[0].partitions[0].current_leader_epoch = epoch
    response = client.call(FETCH, version, request)
    partition = response.responses[0].partitions[0]
    assert partition.error_code == error
    assert bool(partition.records) == (error == 0)
    if version >= 12 and error == ErrorCode.FENCED_LEADER_EPOCH:
        assert partition.current_leader.leader_epoch == CURRENT
    if version >= 16 and error == ErrorCode.FENCED_LEADER_EPOCH:
        assert [node.host for node in response.node_endpoints] == ["127.0.0.1"]


@pytest.mark.parametrize("version", range(4, 12))
@pytest.mark.parametrize(("epoch", "error"), EPOCH_CHECKS)
def test_8_list_offsets_checks_the_current_epoch(
    two_epochs: Any, version: int, epoch: int, error: int
) -> None:
    client, topic, _ = two_epochs
    answer = list_offset(client, topic, LATEST, version=version, current_leader_epoch=epoch)
    assert (answer.error_code, answer.offset) == (error, -1 if error else 5)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(("epoch", "error"), EPOCH_CHECKS)
def test_8_offset_for_leader_epoch_checks_the_current_epoch(
    two_epochs: Any, version: int, epoch: int, error: int
) -> None:
    client, topic, _ = two_epochs
    answer = epoch_end(client, topic, 0, version, current=epoch)
    assert answer.error_code == error
    assert (answer.leader_epoch, answer.end_offset) == ((-1, -1) if error else (0, 3))


@pytest.mark.parametrize("version", [2, 3, 4])
def test_8_where_epochs_end(two_epochs: Any, version: int) -> None:
    client, both, cut = two_epochs
    ends = {epoch: epoch_end(client, both, epoch, version) for epoch in (*range(4), -1)}
    ends_by_epoch = {epoch: (answer.leader_epoch, answer.end_offset) for epoch, answer in ends.items()}
    nowhere = (-1, -1)
    assert ends_by_epoch == {
        OLD: (OLD, 3),
        LEADERLESS: (OLD, 3),
        CURRENT: (CURRENT, 5),
        FUTURE: nowhere,
        -1: nowhere,
    }
    # An epoch before the log start ends at the log start, not at a deleted offset.
    answer = epoch_end(client, cut, 0, version)
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, 0, 4)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_8_only_a_leader_answers_where_epochs_end(two_epochs: Any, version: int) -> None:
    answer = epoch_end(two_epochs[0], Topic("not-there", bytes(16)), 0, version)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (answer.leader_epoch, answer.end_offset) == (-1, -1)


@pytest.mark.parametrize("version", range(12, 19))
@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (5, OLD, (OLD, 3)),
        (4, OLD, (OLD, 3)),
        (3, OLD, None),
        (2, OLD, None),
        (3, LEADERLESS, (OLD, 3)),
        (3, CURRENT, None),
        (5, CURRENT, None),
    ],
)
def test_8_a_fetch_from_a_diverging_log_gets_the_diverging_epoch(
    two_epochs: Any, version: int, offset: int, last_epoch: int, diverging: tuple[int, int] | None
) -> None:
    client, topic, _ = two_epochs
    request = fetch_request(topic, offset)
    request.topics[0].partitions[0].last_fetched_epoch = last_epoch
    partition = client.call(FETCH, version, request).responses[0].partitions[0]
    assert partition.error_code == 0
    end = partition.diverging_epoch
    assert (end.epoch, end.end_offset) == (diverging or (-1, -1))
    assert bool(partition.records) == (diverging is None and offset < 5)


@pytest.mark.parametrize("version", range(4, 12))
def test_8_list_offsets_has_the_epoch_of_the_record(two_epochs: Any, version: int) -> None:
    """Not the current one: it is committed, and a consumer that resumes with a wrong one resets."""
    client, both, cut = two_epochs
    epochs = {
        TIMESTAMP: (0, OLD),
        TIMESTAMP + 2: (2, OLD),
        TIMESTAMP + 50: (3, CURRENT),
        EARLIEST: (0, OLD),
        LATEST: (5, CURRENT),
    }
    for timestamp, expected in epochs.items():
        answer = list_offset(client, both, timestamp, version=version)
        assert (answer.offset, answer.leader_epoch) == expected
    answer = list_offset(client, cut, EARLIEST, version=version)
    assert (answer.offset, answer.leader_epoch) == (4, CURRENT)


def test_8_batches_keep_the_epoch_they_were_written_in(two_epochs: Any) -> None:
    client, topic, _ = two_epochs
    records = fetch_partition(client, topic).records
    assert [header.leader_epoch for _, header in iter_headers(records)] == [OLD, CURRENT]


# ---- pitfall 14


@pytest.fixture
def topic(client: RawClient) -> Topic:
    """Offsets 0-2 and 3-5; the largest timestamp is that of offset 2."""
    topic = new_topic(client)
    produce_batch(client, topic, batch_of(b"0", b"1", b"2", timestamp=TIMESTAMP + 1000))
    produce_batch(client, topic, batch_of(b"3", b"4", b"5", timestamp=TIMESTAMP + 500))
    return topic


@pytest.mark.parametrize("version", LIST_VERSIONS)
def test_14_the_ends_of_a_log(client: RawClient, topic: Topic, version: int) -> None:
    for isolation_level in (0, 1):
        latest = list_offset(client, topic, LATEST, version=version, isolation_level=isolation_level)
        assert (latest.error_code, latest.offset, latest.timestamp) == (0, 6, -1)
    earliest = list_offset(client, topic, EARLIEST, version=version)
    assert (earliest.error_code, earliest.offset, earliest.timestamp) == (0, 0, -1)


@pytest.mark.parametrize(
    ("timestamp", "first_version", "offset"),
    [(MAX_TIMESTAMP, 7, 2), (EARLIEST_LOCAL, 8, 0), (LATEST_TIERED, 9, -1), (EARLIEST_PENDING, 11, 0)],
    ids=["max timestamp", "earliest local", "latest tiered", "earliest pending"],
)
@pytest.mark.parametrize("version", LIST_VERSIONS)
def test_14_special_timestamps_by_version(
    client: RawClient, topic: Topic, version: int, timestamp: int, first_version: int, offset: int
) -> None:
    answer = list_offset(client, topic, timestamp, version=version)
    if version < first_version:
        assert (answer.error_code, answer.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)
    else:
        assert (answer.error_code, answer.offset) == (0, offset)
    if answer.offset == 2:
        assert answer.timestamp == TIMESTAMP + 1002


@pytest.mark.parametrize("timestamp", [-7, -100, -(2**63)])
def test_14_other_negative_timestamps_are_refused(client: RawClient, topic: Topic, timestamp: int) -> None:
    assert list_offset(client, topic, timestamp).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("compression", [0, 1, 2, 3, 4])
def test_14_a_time_finds_the_exact_record(client: RawClient, compression: int) -> None:
    topic = new_topic(client, index_interval_bytes="10")
    for batch in range(5):
        values = [b"x" * 50] * 4
        produce_batch(
            client, topic, batch_of(*values, timestamp=TIMESTAMP + 100 * batch, compression=compression)
        )
    for batch in range(5):
        for place in range(4):
            answer = list_offset(client, topic, TIMESTAMP + 100 * batch + place)
            assert (answer.offset, answer.timestamp) == (4 * batch + place, TIMESTAMP + 100 * batch + place)
    between = list_offset(client, topic, TIMESTAMP + 150)
    assert (between.offset, between.timestamp) == (8, TIMESTAMP + 200)
    before = list_offset(client, topic, 0)
    assert (before.offset, before.timestamp) == (0, TIMESTAMP)


@pytest.mark.parametrize("version", LIST_VERSIONS)
def test_14_a_time_after_the_last_record_has_no_offset(client: RawClient, topic: Topic, version: int) -> None:
    answer = list_offset(client, topic, TIMESTAMP + 5000, version=version)
    assert (answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch) == (0, -1, -1, -1)


def test_14_an_empty_log_has_ends_and_no_times(client: RawClient) -> None:
    topic = new_topic(client)
    timestamps = (LATEST, EARLIEST, MAX_TIMESTAMP, TIMESTAMP)
    assert [list_offset(client, topic, timestamp).offset for timestamp in timestamps] == [0, 0, -1, -1]
