"""Waiting for records, and the content of one fetch."""

import threading

import pytest
from confluent_kafka import TopicPartition
from tests.clients.client import Client, Message, Reading, Sending, contents, numbered
from tests.clients.confluent_client import ConfluentClient
from tests.clients.conftest import MakeTopic


def test_waiting_reader_is_woken_by_the_record(client: Client, topic: str, bootstrap: str) -> None:
    """The fetch may wait for a minute; only an append that wakes it brings the record in time."""
    late = threading.Timer(1.0, ConfluentClient(bootstrap).produce, (topic, [Message(b"at last")]))
    late.start()
    received = client.read(topic, 1, reading=Reading(timeout_s=20, wait_ms=50_000))
    late.join()
    assert [message.value for message in received] == [b"at last"]


def test_reader_follows_a_growing_log(client: Client, topic: str, bootstrap: str) -> None:
    def write() -> None:
        writer = ConfluentClient(bootstrap)
        for turn in range(5):
            writer.produce(topic, numbered(20, prefix=f"turn {turn}"))

    writing = threading.Thread(target=write)
    writing.start()
    received = client.read(topic, 100, reading=Reading(wait_ms=10_000))
    writing.join()
    assert [message.offset for message in received] == list(range(100))


def test_a_batch_larger_than_the_fetch_is_still_returned(client: Client, topic: str) -> None:
    sent = [Message(bytes([number]) * 200_000) for number in range(3)]
    client.produce(topic, sent)
    received = client.read(topic, 3, reading=Reading(bytes_max=1000))
    assert contents(received) == contents(sent)


def test_many_small_batches_are_read_whole(client: Client, topic: str) -> None:
    sent = numbered(150)
    client.produce(topic, sent, Sending(linger_ms=0))
    assert contents(client.read(topic, 150, reading=Reading(bytes_max=500))) == contents(sent)


def test_reading_across_segments(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"segment.bytes": "1048576", "max.message.bytes": "300000"})
    sent = [Message(bytes([number]) * 250_000, b"%d" % number) for number in range(12)]
    client.produce(topic, sent, Sending(bytes_max=300_000))
    assert contents(client.read(topic, 12)) == contents(sent)
    assert contents(client.read(topic, 4, offset=8)) == contents(sent[8:])


@pytest.mark.parametrize("partitions", [1, 40])
def test_one_consumer_of_all_partitions(bootstrap: str, make_topic: MakeTopic, partitions: int) -> None:
    client = ConfluentClient(bootstrap)
    topic = make_topic(partitions=partitions)
    client.produce(topic, [Message(b"%d" % number, partition=number % partitions) for number in range(400)])
    consumer = client.consumer(Reading())
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    values: set[bytes | None] = set()
    try:
        for _ in range(200):
            values.update(record.value() for record in consumer.consume(400, timeout=0.1))
            if len(values) == 400:
                break
    finally:
        consumer.close()
    assert values == {b"%d" % number for number in range(400)}
