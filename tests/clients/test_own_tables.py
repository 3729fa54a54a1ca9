"""Our producer with Arrow tables: the rows of a table are written as if they had been sent one by one."""

import itertools
import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer as JudgeProducer
from tests.clients.broker_process import BrokerProcess
from tests.clients.client import wait_until
from tests.clients.confluent_client import ConfluentAdmin
from tests.clients.test_own_producer import read

from barnabas.client.admin import Admin
from barnabas.client.consumer import Consumer
from barnabas.client.errors import ErrorCode, KafkaError, KafkaTimeoutError, SerializationError
from barnabas.client.producer import Producer, round_robin_partitioner
from barnabas.client.producer.tables import BatchResult
from barnabas.client.types import TopicPartition

MakeTopic = Callable[..., str]
PATIENCE_SECONDS = 60
COUNT = 5000


@pytest.fixture
def make_topic(plain_admin: ConfluentAdmin, topic_name: str) -> MakeTopic:
    """make_topic(...) creates another topic with each call."""
    names = (f"{topic_name}-{number}" for number in itertools.count())

    def make(partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        name = next(names)
        plain_admin.create_topic(name, partitions, configs=configs)
        return name

    return make


def table_of(count: int, first: int = 0, **more: Any) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {"key": [b"key-%d" % (each % 50) for each in numbers], "value": [b"%06d" % each for each in numbers]}
        | more
    )


def offsets(result: BatchResult) -> int:
    return sum(len(each) for written in result.partitions.values() for each in written.offsets)


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_table_is_written_as_librdkafka_would_spread_it(
    bootstrap: str, make_topic: MakeTopic, compression: str
) -> None:
    topic, judged = make_topic(partitions=4), make_topic(partitions=4)
    judge = JudgeProducer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    table = table_of(COUNT)
    for row in table.to_pylist():
        judge.produce(judged, key=row["key"], value=row["value"])
    judge.flush(PATIENCE_SECONDS)
    with Producer(bootstrap_servers=bootstrap, compression_type=compression) as producer:
        result = producer.send_batch(topic, table).result(PATIENCE_SECONDS)
    assert result.count == COUNT == offsets(result)
    assert set(result.partitions) == {TopicPartition(topic, index) for index in range(4)}
    tables = [sorted(row[:3] for row in read(bootstrap, name, 4)) for name in (topic, judged)]
    assert tables[0] == tables[1]
    rows = read(bootstrap, topic, 4)
    for partition in range(4):
        values = [row[2] for row in rows if row[0] == partition]
        assert values == sorted(values, key=lambda value: value or b"")


def test_all_columns_arrive(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
    headers = pa.array([[("a", b"1"), ("b", None)], None, []], pa.list_(pair))
    table = pa.table(
        {
            "value": ["x", None, "z"],
            "key": [None, "k", None],
            "headers": headers,
            "partition": [2, 2, 0],
            "timestamp": pa.array([1000, 2000, 3000], pa.timestamp("ms", "UTC")),
        }
    )
    with Producer(bootstrap_servers=bootstrap) as producer:
        result = producer.send_batch(topic, table).result(PATIENCE_SECONDS)
        columns = {"value": ["more"], "partition": [1], "timestamp": [4000]}
        producer.send_batch(topic, columns).result(PATIENCE_SECONDS)
    assert result.partitions[TopicPartition(topic, 2)].offsets == (range(2),)
    assert sorted(read(bootstrap, topic, 3), key=lambda row: row[0]) == [
        (0, None, b"z", None, 3000),
        (1, None, b"more", None, 4000),
        (2, None, b"x", [("a", b"1"), ("b", None)], 1000),
        (2, b"k", None, None, 2000),
    ]


def test_rows_without_keys_are_spread_and_tables_name_topics(bootstrap: str, make_topic: MakeTopic) -> None:
    topics = [make_topic(partitions=4), make_topic(partitions=4)]
    names = [topics[index % 2] for index in range(COUNT)]
    table = table_of(COUNT, topic=names).drop_columns(["key"])
    with Producer(bootstrap_servers=bootstrap, batch_size=2000) as producer:
        result = producer.send_batch(None, table).result(PATIENCE_SECONDS)
    assert len(result.partitions) == 8
    for number, topic in enumerate(topics):
        values = sorted(int(row[2] or b"") for row in read(bootstrap, topic, 4))
        assert values == list(range(number, COUNT, 2))


def test_rows_may_name_a_partition_that_was_added_later(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=1)
    with Producer(bootstrap_servers=bootstrap, max_block_ms=10_000) as producer:
        producer.send_batch(topic, table_of(10)).result(PATIENCE_SECONDS)
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_partitions({topic: 2})
        numbers = pa.array([1, None] * 5, pa.int64())
        result = producer.send_batch(topic, table_of(10, partition=numbers)).result(PATIENCE_SECONDS)
        assert result.partitions[TopicPartition(topic, 1)].count >= 5
        with pytest.raises(ValueError, match="must have 32-bit integers"):
            producer.send_batch(topic, table_of(1, partition=pa.array([1 << 40])))


def test_a_polled_table_can_be_sent_to_another_topic(bootstrap: str, make_topic: MakeTopic) -> None:
    source, target = make_topic(), make_topic()
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send_batch(source, table_of(100)).result(PATIENCE_SECONDS)
        with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(source, 0)])
            polled = consumer.poll_arrow(PATIENCE_SECONDS)
        assert polled.num_rows
        producer.send_batch(target, polled).result(PATIENCE_SECONDS)
    assert read(bootstrap, target) == read(bootstrap, source)[: polled.num_rows]


def test_single_records_and_tables_keep_their_order(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with Producer(bootstrap_servers=bootstrap, linger_ms=1000) as producer:
        producer.send(topic, b"000000")
        future = producer.send_batch(topic, table_of(COUNT, first=1))
        producer.send(topic, b"%06d" % (COUNT + 1))
        producer.flush(PATIENCE_SECONDS)
        assert future.done()
    assert [int(row[2] or b"") for row in read(bootstrap, topic)] == list(range(COUNT + 2))


def test_pairs_are_serialized_and_partitioners_are_called(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    settings = {
        "value_serializer": lambda value: str(value).encode(),
        "partitioner_class": round_robin_partitioner(),
    }
    with Producer(bootstrap_servers=bootstrap, **settings) as producer:
        result = producer.send_batch(topic, [(None, number) for number in range(9)]).result(PATIENCE_SECONDS)
        with pytest.raises(SerializationError, match="'broken'"):
            producer.send_batch("broken", [(None, type("Broken", (), {"__str__": lambda _: 1 / 0})())])
    assert [written.count for written in result.partitions.values()] == [3, 3, 3]
    assert sorted(int(row[2] or b"") for row in read(bootstrap, topic, 3)) == list(range(9))


def test_memory_is_bounded_and_a_callback_reports_the_end(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    outcomes: list[Any] = []
    done = threading.Event()

    def on_delivery(result: BatchResult | None, error: KafkaError | None) -> None:
        outcomes.append((result, error))
        done.set()

    table = pa.table({"value": [b"x" * 1000] * 2000})
    settings = {"batch_size": 20_000, "buffer_memory": 100_000}
    with Producer(bootstrap_servers=bootstrap, **settings) as producer:
        producer.send_batch(topic, table, on_delivery)
        assert done.wait(PATIENCE_SECONDS)
        assert producer.metrics()["buffer-available-bytes"] == 100_000
    ((result, error),) = outcomes
    assert error is None
    assert result.count == len(read(bootstrap, topic, 2)) == 2000


def test_a_row_that_is_too_large_is_refused_and_nothing_is_sent(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with Producer(bootstrap_servers=bootstrap, max_request_size=5000, max_block_ms=3000) as producer:
        with pytest.raises(KafkaError, match="6000 bytes") as raised:
            producer.send_batch(topic, pa.table({"value": [b"fine", b"x" * 6000]}))
        assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(KafkaTimeoutError, match="there is no partition 7"):
            producer.send_batch(topic, pa.table({"value": ["a"], "partition": [7]}))
    assert read(bootstrap, topic) == []


def test_batches_that_are_too_large_for_the_broker_are_split(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"max.message.bytes": "2000"})
    outcomes: list[Any] = []
    with Producer(bootstrap_servers=bootstrap, batch_size=20_000) as producer:
        future = producer.send_batch(topic, table_of(1000), lambda *outcome: outcomes.append(outcome))
        result = future.result(PATIENCE_SECONDS)
        assert producer.metrics()["batch-split-total"] > 0
        producer.flush(PATIENCE_SECONDS)
    assert result.partitions[TopicPartition(topic, 0)].offsets == (range(1000),)
    assert [error for _, error in outcomes] == [None]
    assert [int(row[2] or b"") for row in read(bootstrap, topic)] == list(range(1000))


def test_an_error_says_how_many_records_failed_and_written_has_the_others(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(configs={"max.message.bytes": "500"})
    table = pa.table({"value": [b"small"] * 10 + [b"x" * 900] + [b"small"] * 10})
    outcomes: list[Any] = []
    with Producer(bootstrap_servers=bootstrap, enable_idempotence=False) as producer:
        future = producer.send_batch(topic, table, lambda *outcome: outcomes.append(outcome))
        with pytest.raises(
            KafkaError, match=f"of 21 records were not written, first those for {topic}-0"
        ) as raised:
            future.result(PATIENCE_SECONDS)
        assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE
        producer.flush(PATIENCE_SECONDS)
    written = future.written()
    assert written.count == len(read(bootstrap, topic)) < 21
    ((result, error),) = outcomes
    assert result is None
    assert isinstance(error, KafkaError)


def test_a_table_in_a_transaction(quick_bootstrap: str, make_quick_topic: MakeTopic) -> None:
    topic = make_quick_topic(partitions=2)
    with Producer(bootstrap_servers=quick_bootstrap, transactional_id=f"tables-{topic}") as producer:
        producer.init_transactions()
        with pytest.raises(KafkaError):
            producer.send_batch(topic, table_of(1))
        for first, ends in ((0, producer.abort_transaction), (1000, producer.commit_transaction)):
            producer.begin_transaction()
            producer.send_batch(topic, table_of(1000, first=first))
            ends()

    def values() -> list[int]:
        return sorted(int(row[2] or b"") for row in read(quick_bootstrap, topic, 2))

    # The markers of a commit may be written after its answer, and readers see the records only then.
    wait_until(lambda: len(values()) >= 1000, "the committed rows are seen", PATIENCE_SECONDS)
    assert values() == list(range(1000, 2000))


def test_no_broker_is_a_timeout_of_the_result(own_quick_broker: BrokerProcess) -> None:
    with Producer(bootstrap_servers=own_quick_broker.bootstrap, delivery_timeout_ms=600_000) as producer:
        producer.send_batch("t", table_of(1)).result(PATIENCE_SECONDS)
        os.kill(own_quick_broker.pid, signal.SIGSTOP)
        try:
            future = producer.send_batch("t", table_of(10))
            with pytest.raises(KafkaTimeoutError, match="t-0 were not confirmed"):
                future.result(0.2)
            assert not future.done()
        finally:
            os.kill(own_quick_broker.pid, signal.SIGCONT)
        assert future.result(PATIENCE_SECONDS).count == 10
