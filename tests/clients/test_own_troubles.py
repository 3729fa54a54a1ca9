"""Brokers that are down, names that do not resolve, missing topics: one warning each, and the cause in the
error of every method that gives up."""

import asyncio
import logging
import re
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from barnabas import Admin, AsyncProducer, Consumer, KafkaTimeoutError, NewTopic, Producer, TopicPartition
from barnabas.testing import Broker

PATIENCE_SECONDS = 30.0
NOT_COMPARED = re.compile(r"^\[[^]]+\] |, for \d+ s| after [\d.]+ s")


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port on which nobody listens: bound, so that nobody else gets it."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The lines about troubles, without the name of the client and the seconds."""
    caplog.set_level(logging.INFO, "barnabas.client")
    return lambda: [
        f"{record.levelname} {NOT_COMPARED.sub('', record.getMessage())}"
        for record in caplog.records
        if record.name == "barnabas.client"
    ]


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_broker_that_is_down(unused_port: int, log: Callable[[], list[str]]) -> None:
    place = f"127.0.0.1:{unused_port}"
    refused = f"connection refused by {place}"
    with Producer(bootstrap_servers=place, max_block_ms=1500, retry_backoff_ms=10) as producer:
        with pytest.raises(KafkaTimeoutError, match=rf"no metadata of topic 't' within .*: {refused}$"):
            producer.send("t", b"x")
        with pytest.raises(KafkaTimeoutError, match=refused):
            producer.partitions_for("t")
    assert log() == [f"WARNING {refused}; trying again"]


def test_a_broker_that_comes_back(log: Callable[[], list[str]]) -> None:
    with Broker() as broker:
        settings = {"bootstrap.servers": broker.bootstrap, "reconnect.backoff.max.ms": 100}
        with Producer(settings, retry_backoff_ms=10) as producer:
            producer.send("t", b"before").result(PATIENCE_SECONDS)
            broker.stop()
            late = producer.send("t", b"after")
            wait_for(log)
            with pytest.raises(KafkaTimeoutError, match=f"t-0 is not confirmed .*{broker.bootstrap}"):
                late.result(0.2)
            with pytest.raises(KafkaTimeoutError, match=f"not all records .*{broker.bootstrap}"):
                producer.flush(0.01)
            broker.start()
            assert late.result(PATIENCE_SECONDS).offset == 1
    down, back = log()
    assert down == f"WARNING connection refused by {broker.bootstrap}; trying again"
    assert back == f"INFO the broker at {broker.bootstrap} is available"


def test_a_name_that_does_not_resolve(log: Callable[[], list[str]]) -> None:
    sentence = "the name 'no-such-host.invalid' does not resolve"
    partition = TopicPartition("t", 0)
    with Consumer(bootstrap_servers="no-such-host.invalid:9092") as consumer:
        consumer.assign([partition])
        wait_for(log)
        with pytest.raises(KafkaTimeoutError, match=sentence):
            consumer.position(partition, timeout=0.1)
    (line,) = log()
    assert line.startswith(f"WARNING {sentence}")


def test_a_topic_that_does_not_exist(log: Callable[[], list[str]]) -> None:
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        with Producer(bootstrap_servers=broker.bootstrap, max_block_ms=1500) as producer:
            with pytest.raises(KafkaTimeoutError, match="topic 't' does not exist"):
                producer.send("t", b"x")
            wait_for(log)
        partition = TopicPartition("u", 0)
        with (
            Admin(bootstrap_servers=broker.bootstrap) as admin,
            Consumer(bootstrap_servers=broker.bootstrap, retry_backoff_max_ms=100) as consumer,
        ):
            consumer.assign([partition])
            assert not consumer.poll(0.1)
            wait_for(lambda: len(log()) == 2)
            with pytest.raises(KafkaTimeoutError, match="u-0 within the timeout: topic 'u' does not exist"):
                consumer.position(partition, timeout=0.1)
            admin.create_topics([NewTopic("u", partitions=1)])
            assert consumer.position(partition, timeout=PATIENCE_SECONDS) == 0
    assert log() == [
        "WARNING topic 't' does not exist; trying again",
        "WARNING topic 'u' does not exist; trying again",
        "INFO topic 'u' is available",
    ]


def test_a_partition_that_does_not_exist(log: Callable[[], list[str]]) -> None:
    sentence = "topic 't' has 1 partition; there is no partition 99"
    with Broker() as broker:
        producer = Producer(bootstrap_servers=broker.bootstrap, max_block_ms=1500)
        with producer, pytest.raises(KafkaTimeoutError, match=f"within max.block.ms: {sentence}"):
            producer.send("t", b"x", partition=99)
        with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
            consumer.assign([TopicPartition("t", 99)])
            wait_for(log)
            with pytest.raises(KafkaTimeoutError, match=sentence):
                consumer.end_offsets([TopicPartition("t", 99)], timeout=0.1)
    assert log() == [f"WARNING {sentence}; trying again"]


def test_the_asyncio_forms_say_the_same(unused_port: int) -> None:
    refused = f"connection refused by 127.0.0.1:{unused_port}"

    async def run() -> None:
        async with AsyncProducer(bootstrap_servers=f"127.0.0.1:{unused_port}", max_block_ms=1500) as producer:
            with pytest.raises(KafkaTimeoutError, match=rf"no metadata of topic 't' .*{refused}"):
                await producer.send("t", b"x")
            with pytest.raises(KafkaTimeoutError, match=refused):
                await producer.partitions_for("t")

    asyncio.run(run())
