"""Pitfalls 7, 12, 15: topic ids, automatic creation, and a result for each topic."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.raw_calls import (
    CREATE_TOPICS,
    METADATA,
    Topic,
    batch_of,
    fetch_partition,
    list_offset,
    new_topic,
    produce_batch,
)
from tests.support.raw_client import RawClient

from barnabas.errors import ErrorCode
from barnabas.ids import ZERO_UUID
from barnabas.testing import Broker
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

DELETE_TOPICS, DELETE_RECORDS, CREATE_PARTITIONS = 20, 21, 37
LATEST = -1


def described(client: RawClient, name: str, version: int = 12, *, create: bool = False) -> Any:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=create)
    (topic,) = client.call(METADATA, version, request).topics
    return topic


def delete(client: RawClient, **reference: Any) -> Any:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(**reference)])
    (result,) = client.call(DELETE_TOPICS, 6, request).responses
    return result


# ---- pitfall 7


@pytest.mark.parametrize("version", [12, 13])
def test_7_a_topic_is_answered_once_whatever_names_come_with_its_id(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    requested = [MetadataRequestTopic(name=name, topic_id=topic.id) for name in ("a", None, topic.name, "b")]
    answer = client.call(METADATA, version, MetadataRequest(topics=requested))
    assert [(each.name, each.topic_id) for each in answer.topics] == [topic]


@pytest.mark.parametrize("version", range(10, 14))
def test_7_ids_are_not_zero_and_stay_the_same(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    assert topic.id != ZERO_UUID
    assert described(client, topic.name, version).topic_id == topic.id
    assert described(client, topic.name, version).topic_id == topic.id


@pytest.mark.parametrize("version", [12, 13])
def test_7_a_topic_is_found_by_id(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    requested = [MetadataRequestTopic(name=None, topic_id=each) for each in (topic.id, b"\x01" * 16)]
    known, unknown = client.call(METADATA, version, MetadataRequest(topics=requested)).topics
    assert (known.error_code, known.name, known.topic_id) == (0, *topic)
    assert (unknown.error_code, unknown.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
    assert unknown.topic_id == b"\x01" * 16


@pytest.mark.parametrize("version", range(13, 19))
def test_7_fetch_by_an_unknown_id(client: RawClient, version: int) -> None:
    partition = fetch_partition(client, Topic("", b"\x01" * 16), version=version)
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_7_a_topic_made_again_has_another_id_and_none_of_the_old_records(client: RawClient) -> None:
    old = new_topic(client)
    produce_batch(client, old, batch_of(b"old"))
    assert delete(client, name=old.name).error_code == 0
    new = new_topic(client, name=old.name)
    assert new.id != old.id
    assert fetch_partition(client, old, version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert produce_batch(client, old, batch_of(b"lost"), version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    fetched = fetch_partition(client, new, version=13)
    assert (fetched.error_code, fetched.high_watermark, bytes(fetched.records or b"")) == (0, 0, b"")


def test_7_topics_are_deleted_by_id_as_well(client: RawClient) -> None:
    topic = new_topic(client)
    unknown = delete(client, topic_id=b"\x01" * 16)
    assert (unknown.error_code, unknown.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
    assert delete(client, topic_id=topic.id).name == topic.name
    assert described(client, topic.name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# ---- pitfall 12


@pytest.mark.parametrize("version", range(14))
def test_12_metadata_creates_a_topic_with_the_brokers_partitions(client: RawClient, version: int) -> None:
    """Versions below 4 cannot forbid it. The first response may have no leaders, a later one has four."""
    name = f"made-on-the-way-{version}"
    for _ in range(10):
        topic = described(client, name, version, create=True)
        if not topic.error_code:
            break
        assert topic.error_code in (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert sorted(partition.partition_index for partition in topic.partitions) == [0, 1, 2, 3]
    assert all(partition.error_code == 0 for partition in topic.partitions)
    assert produce_batch(client, Topic(name, topic.topic_id), batch_of(b"a"), partition=3).error_code == 0


@pytest.mark.parametrize("version", range(4, 14))
def test_12_the_client_may_forbid_it(client: RawClient, version: int) -> None:
    name = f"not-wanted-{version}"
    assert described(client, name, version).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert described(client, name, version).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250])
def test_12_an_impossible_name_is_refused(client: RawClient, name: str) -> None:
    assert described(client, name, create=True).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_12_asking_for_all_topics_creates_none(client: RawClient) -> None:
    before = {topic.name for topic in client.call(METADATA, 12, MetadataRequest(topics=None)).topics}
    assert client.call(METADATA, 12, MetadataRequest(topics=[])).topics == []
    everything = client.call(METADATA, 0, MetadataRequest(topics=[])).topics
    assert {topic.name for topic in everything} == before


@pytest.fixture(scope="module")
def strict_client() -> Iterator[RawClient]:
    with (
        Broker({"auto.create.topics.enable": "false"}) as broker,
        RawClient("127.0.0.1", broker.port) as client,
    ):
        yield client


@pytest.mark.parametrize("version", [0, 3, 4, 13])
def test_12_the_broker_may_forbid_it(strict_client: RawClient, version: int) -> None:
    for _ in range(2):
        topic = described(strict_client, "not-allowed", version, create=True)
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# ---- pitfall 15


def create(client: RawClient, *topics: CreatableTopic, version: int = 7, validate_only: bool = False) -> Any:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    return {result.name: result for result in client.call(CREATE_TOPICS, version, request).topics}


@pytest.mark.parametrize("version", range(2, 8))
def test_15_every_topic_of_a_request_has_its_own_answer(client: RawClient, version: int) -> None:
    existing = new_topic(client).name
    good, few, many = f"good-{version}", f"few-{version}", f"many-{version}"
    wrong, strange = f"wrong-{version}", f"strange-{version}"
    invalid = [CreatableTopicConfig(name="retention.ms", value="soon")]
    unknown = [CreatableTopicConfig(name="no.such.config", value="1")]
    results = create(
        client,
        CreatableTopic(name=good, num_partitions=2, replication_factor=1),
        CreatableTopic(name=existing, num_partitions=1, replication_factor=1),
        CreatableTopic(name=few, num_partitions=0, replication_factor=1),
        CreatableTopic(name=many, num_partitions=1, replication_factor=3),
        CreatableTopic(name=wrong, num_partitions=1, replication_factor=1, configs=invalid),
        CreatableTopic(name=strange, num_partitions=1, replication_factor=1, configs=unknown),
        CreatableTopic(name="a b", num_partitions=1, replication_factor=1),
        version=version,
    )
    assert {name: result.error_code for name, result in results.items()} == {
        good: ErrorCode.NONE,
        existing: ErrorCode.TOPIC_ALREADY_EXISTS,
        few: ErrorCode.INVALID_PARTITIONS,
        many: ErrorCode.INVALID_REPLICATION_FACTOR,
        wrong: ErrorCode.INVALID_CONFIG,
        strange: ErrorCode.INVALID_CONFIG,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert results[wrong].error_message
    assert len(described(client, good).partitions) == 2
    assert described(client, wrong).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", range(4, 8))
def test_15_minus_1_means_the_defaults(client: RawClient, version: int) -> None:
    name = f"by-default-{version}"
    result = create(
        client, CreatableTopic(name=name, num_partitions=-1, replication_factor=-1), version=version
    )[name]
    assert result.error_code == 0
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (4, 1)
        assert len(result.configs) > 20
    assert len(described(client, name).partitions) == 4


@pytest.mark.parametrize("version", range(2, 8))
def test_15_validate_only_creates_nothing(client: RawClient, version: int) -> None:
    good = CreatableTopic(name=f"only-checked-{version}", num_partitions=3, replication_factor=1)
    bad = CreatableTopic(name=f"only-checked-{version}-bad", num_partitions=-7, replication_factor=1)
    results = create(client, good, bad, version=version, validate_only=True)
    assert results[good.name].error_code == 0
    assert results[bad.name].error_code == ErrorCode.INVALID_PARTITIONS
    assert described(client, good.name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", range(4))
def test_15_partitions_are_added_per_topic(client: RawClient, version: int) -> None:
    grown, kept, checked = new_topic(client, 2), new_topic(client, 2), new_topic(client, 2)

    def ask(*topics: tuple[str, int], validate_only: bool = False) -> list[int]:
        requested = [
            CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in topics
        ]
        request = CreatePartitionsRequest(topics=requested, timeout_ms=10_000, validate_only=validate_only)
        return [result.error_code for result in client.call(CREATE_PARTITIONS, version, request).results]

    assert ask((grown.name, 5), (kept.name, 2), ("not-there", 3)) == [
        ErrorCode.NONE,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert ask((checked.name, 3), validate_only=True) == [ErrorCode.NONE]
    assert ask((kept.name, 1)) == [ErrorCode.INVALID_PARTITIONS]
    sizes = [len(described(client, topic.name).partitions) for topic in (grown, kept, checked)]
    assert sizes == [5, 2, 2]
    assert produce_batch(client, grown, batch_of(b"a"), partition=4).error_code == 0


@pytest.mark.parametrize("version", range(3))
def test_15_records_are_deleted_per_partition(client: RawClient, version: int) -> None:
    topic = new_topic(client, 3)
    for partition in range(3):
        produce_batch(client, topic, batch_of(b"a", b"b", b"c"), partition=partition)
    deletions = [
        DeleteRecordsPartition(partition_index=index, offset=offset)
        for index, offset in ((0, 2), (1, -1), (2, 4), (3, 0))
    ]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic.name, partitions=deletions)])
    response = client.call(DELETE_RECORDS, version, request)
    answers = [(part.error_code, part.low_watermark) for part in response.topics[0].partitions]
    assert answers == [
        (ErrorCode.NONE, 2),
        (ErrorCode.NONE, 3),
        (ErrorCode.OFFSET_OUT_OF_RANGE, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]
    assert fetch_partition(client, topic, 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetch_partition(client, topic, 2).log_start_offset == 2
    assert list_offset(client, topic, LATEST).offset == 3
