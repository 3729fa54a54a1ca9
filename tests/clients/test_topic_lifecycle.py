"""Topics that appear, vanish and come back while clients use them."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition
from tests.clients.client import Client, Message, Reading, Sending, contents, numbered, wait_until
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient

UNKNOWN_TOPIC_OR_PARTITION = 3


def test_a_metadata_request_creates_the_requested_topic(client: Client, topic_name: str) -> None:
    assert client.produce(topic_name, numbered(3)) == [0, 1, 2]
    assert contents(client.read(topic_name, 3)) == contents(numbered(3))


def test_a_metadata_request_of_a_consumer_creates_no_topic(
    bootstrap: str, plain_admin: ConfluentAdmin, topic_name: str
) -> None:
    """A consumer of librdkafka forbids the broker to create the topic."""
    consumer = ConfluentClient(bootstrap).consumer(Reading())
    try:
        listed = consumer.list_topics(topic_name, timeout=20).topics[topic_name]
    finally:
        consumer.close()
    assert listed.error is not None and listed.error.code() == UNKNOWN_TOPIC_OR_PARTITION
    assert topic_name not in plain_admin.topics()


def _recreate(admin: ConfluentAdmin, topic: str) -> None:
    admin.delete_topic(topic)
    wait_until(lambda: topic not in admin.topics(), "the topic is gone")
    admin.create_topic(topic)
    wait_until(lambda: topic in admin.topics(), "the topic is back")


def test_recreated_topic_starts_empty(client: Client, topic: str, plain_admin: ConfluentAdmin) -> None:
    client.produce(topic, numbered(10, prefix="old"))
    _recreate(plain_admin, topic)
    assert client.produce(topic, numbered(2, prefix="new")) == [0, 1]
    assert contents(client.read(topic, 2)) == contents(numbered(2, prefix="new"))
    assert client.offset_range(topic) == (0, 2)


@pytest.mark.parametrize("idempotent", [False, True])
def test_running_producer_survives_recreation(
    bootstrap: str, topic: str, plain_admin: ConfluentAdmin, idempotent: bool
) -> None:
    """An idempotent producer starts again: the new topic does not know its sequence numbers."""
    producer = ConfluentClient(bootstrap).producer(Sending(idempotent=idempotent))
    producer.produce(topic, b"before", partition=0)
    assert producer.flush(20) == 0
    _recreate(plain_admin, topic)
    failures: list[object] = []
    producer.produce(topic, b"after", partition=0, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(30) == 0
    assert len(failures) == 1
    survivors = ConfluentClient(bootstrap).offset_range(topic)
    assert survivors == ((0, 1) if failures == [None] else (0, 0))


def test_running_consumer_reads_the_recreated_topic(
    bootstrap: str, topic: str, plain_admin: ConfluentAdmin
) -> None:
    client = ConfluentClient(bootstrap)
    client.produce(topic, numbered(5, prefix="old"))
    consumer = client.consumer(Reading(reset="earliest"))
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert len(consumer.consume(5, timeout=20)) == 5
        _recreate(plain_admin, topic)
        client.produce(topic, [Message(b"new")])
        values: list[bytes | None] = []

        def new_record_is_read() -> bool:
            values.extend(record.value() for record in consumer.consume(1, timeout=0.1) if not record.error())
            return b"new" in values

        wait_until(new_record_is_read, "the record of the new topic")
    finally:
        consumer.close()
