"""The broker refuses requests with Kafka's errors."""

import pytest
from confluent_kafka import TopicCollection
from tests.clients.client import Admin, BrokerError, Client, Message, Sending
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient, answered
from tests.clients.conftest import MakeTopic

MESSAGE_TOO_LARGE = 10
INVALID_TOPIC = 17
UNKNOWN_TOPIC_OR_PARTITION = 3
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40
INVALID_REQUEST = 42
INVALID_TIMESTAMP = 32
INVALID_RECORD = 87
OFFSET_OUT_OF_RANGE = 1
BATCH_OVERHEAD = 61
RECORD_OVERHEAD_MAX = 20


def test_message_just_under_the_limit_is_accepted(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"max.message.bytes": "100000"})
    value = b"x" * (100_000 - BATCH_OVERHEAD - RECORD_OVERHEAD_MAX)
    assert client.produce(topic, [Message(value)]) == [0]
    assert client.read(topic, 1)[0].value == value


def test_message_just_over_the_limit_is_refused(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"max.message.bytes": "100000"})
    with pytest.raises(BrokerError) as refused:
        client.produce(topic, [Message(b"x" * 100_000)])
    assert refused.value.code == MESSAGE_TOO_LARGE
    assert client.offset_range(topic) == (0, 0)


def test_default_limit_is_a_megabyte(client: Client, topic: str) -> None:
    assert client.produce(topic, [Message(b"x" * (1_048_588 - BATCH_OVERHEAD - RECORD_OVERHEAD_MAX))]) == [0]
    with pytest.raises(BrokerError) as refused:
        client.produce(topic, [Message(b"x" * 1_048_588)])
    assert refused.value.code == MESSAGE_TOO_LARGE


# aiokafka has no name for this error.
@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python"], indirect=True)
def test_compacted_topic_demands_a_key(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"cleanup.policy": "compact"})
    assert client.produce(topic, [Message(b"v", b"k")]) == [0]
    with pytest.raises(BrokerError) as refused:
        client.produce(topic, [Message(b"v")])
    assert refused.value.code == INVALID_RECORD


def test_time_too_far_from_now_is_refused(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"message.timestamp.before.max.ms": "3600000"})
    with pytest.raises(BrokerError) as refused:
        client.produce(topic, [Message(b"v", timestamp_ms=1_000_000_000_000)])
    assert refused.value.code == INVALID_TIMESTAMP


def test_topic_exists_already(admin: Admin, topic: str) -> None:
    with pytest.raises(BrokerError) as refused:
        admin.create_topic(topic)
    assert refused.value.code == TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("name", ["with space", "slash/es", "x" * 250, ".."])
def test_topic_name_is_checked(admin: Admin, name: str) -> None:
    with pytest.raises(BrokerError) as refused:
        admin.create_topic(name)
    assert refused.value.code == INVALID_TOPIC


def test_partition_count_is_checked(admin: Admin, topic_name: str) -> None:
    with pytest.raises(BrokerError) as refused:
        admin.create_topic(topic_name, partitions=0)
    assert refused.value.code == INVALID_PARTITIONS


def test_more_replicas_than_brokers(admin: Admin, topic_name: str) -> None:
    with pytest.raises(BrokerError) as refused:
        admin.create_topic(topic_name, replication=7)
    assert refused.value.code == INVALID_REPLICATION_FACTOR
    assert topic_name not in admin.topics()


@pytest.mark.parametrize(
    ("key", "value"),
    [("retention.ms", "soon"), ("cleanup.policy", "burn"), ("no.such.key", "1"), ("segment.bytes", "1")],
)
def test_topic_config_is_checked(admin: Admin, topic_name: str, key: str, value: str) -> None:
    with pytest.raises(BrokerError) as refused:
        admin.create_topic(topic_name, configs={key: value})
    assert refused.value.code == INVALID_CONFIG
    assert topic_name not in admin.topics()


def test_partitions_never_shrink(admin: Admin, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    for total in (2, 3):
        with pytest.raises(BrokerError) as refused:
            admin.add_partitions(topic, total)
        assert refused.value.code == INVALID_PARTITIONS


def test_absent_topic_cannot_be_deleted(admin: Admin, topic_name: str) -> None:
    with pytest.raises(BrokerError) as refused:
        admin.delete_topic(topic_name)
    assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION


def test_absent_topic_cannot_grow(admin: Admin, topic_name: str) -> None:
    with pytest.raises(BrokerError) as refused:
        admin.add_partitions(topic_name, 5)
    assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION


def test_config_of_an_absent_topic(admin: Admin, topic_name: str) -> None:
    with pytest.raises(BrokerError) as refused:
        admin.replace_config(topic_name, {"retention.ms": "1000"})
    assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION


def test_records_beyond_the_end_cannot_be_deleted(admin: Admin, topic: str) -> None:
    with pytest.raises(BrokerError) as refused:
        admin.delete_records(topic, 10)
    assert refused.value.code == OFFSET_OUT_OF_RANGE


def test_refused_batch_does_not_stop_the_next(bootstrap: str, make_topic: MakeTopic) -> None:
    client = ConfluentClient(bootstrap)
    topic = make_topic(configs={"max.message.bytes": "1000"})
    with pytest.raises(BrokerError):
        client.produce(topic, [Message(b"x" * 2000)], Sending(idempotent=True))
    assert client.produce(topic, [Message(b"fits")], Sending(idempotent=True)) == [0]


def test_describing_an_absent_topic_does_not_create_it(bootstrap: str, topic_name: str) -> None:
    admin = ConfluentAdmin(bootstrap)
    futures = admin.library.describe_topics(TopicCollection([topic_name]))
    with pytest.raises(BrokerError) as refused:
        answered(futures[topic_name])
    assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION
    assert topic_name not in admin.topics()
