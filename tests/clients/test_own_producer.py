"""Our producer with a broker: confirmed records are written once and in order, also if the broker is
killed."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.clients.broker_process import BrokerProcess
from tests.clients.confluent_client import ConfluentAdmin
from tests.clients.lossy_proxy import LossyProxy

from barnabas.client.admin import Admin
from barnabas.client.errors import (
    ClosedError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    TransactionAbortableError,
)
from barnabas.client.producer import Producer, round_robin_partitioner
from barnabas.client.types import OffsetAndMetadata
from barnabas.client.types import TopicPartition as OwnPartition

MakeTopic = Callable[..., str]
Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None, int]


def read(bootstrap: str, topic: str, partitions: int = 1, isolation: str = "read_committed") -> list[Row]:
    """(partition, key, value, headers, timestamp) of all records up to the end of every partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "isolation.level": isolation,
        }
    )
    rows: list[Row] = []
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        ends = 0
        while ends < partitions:
            message = consumer.poll(20)
            assert message is not None, "nothing to read"
            if message.error():
                ends += 1
                continue
            rows.append(
                (
                    message.partition(),
                    message.key(),
                    message.value(),
                    message.headers(),
                    message.timestamp()[1],
                )
            )
    finally:
        consumer.close()
    return rows


@pytest.fixture
def producer(bootstrap: str) -> Iterator[Producer]:
    with Producer(bootstrap_servers=bootstrap) as producer:
        yield producer


@pytest.fixture(params=["implicit", "announced"])
def _adding_partitions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of adding partitions to a transaction: implicitly by the first batch, and by a request."""
    if request.param == "announced":
        monkeypatch.setattr("barnabas.client.producer.transactions.IMPLICIT_ADD_FROM", 99)


def test_records_arrive_as_they_were_sent(producer: Producer, bootstrap: str, topic: str) -> None:
    sent = [producer.send(topic, b"value-%d" % number, key=b"key") for number in range(1000)]
    assert [future.result(20).offset for future in sent] == list(range(1000))
    assert [row[2] for row in read(bootstrap, topic)] == [b"value-%d" % number for number in range(1000)]


def test_headers_timestamps_nulls_and_metadata(producer: Producer, bootstrap: str, topic: str) -> None:
    future = producer.send(
        topic, None, key=b"k", headers=[("a", b"1"), ("b", None)], timestamp=1_700_000_000_000
    )
    metadata = future.result(20)
    assert (metadata.topic, metadata.partition, metadata.offset, metadata.timestamp) == (
        topic,
        0,
        0,
        1_700_000_000_000,
    )
    assert (metadata.serialized_key_size, metadata.serialized_value_size) == (1, -1)
    assert read(bootstrap, topic) == [(0, b"k", None, [("a", b"1"), ("b", None)], 1_700_000_000_000)]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_read_by_others(bootstrap: str, topic: str, codec: str) -> None:
    with Producer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
        for number in range(500):
            producer.send(topic, b"the same again %d" % number)
    assert [row[2] for row in read(bootstrap, topic)] == [
        b"the same again %d" % number for number in range(500)
    ]


def test_keys_are_partitioned_as_in_librdkafka_and_java(
    producer: Producer, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=7)
    futures = {
        key: producer.send(topic, b"", key=key) for key in (b"21", b"foobar", b"a-little-bit-long-string")
    }
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    for key, future in futures.items():
        assert future.result(20).partition == (hashes[key] & 0x7FFFFFFF) % 7


def test_records_without_a_key_reach_every_partition(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    with Producer(bootstrap_servers=bootstrap, batch_size=500) as producer:
        futures = [producer.send(topic, b"x" * 100) for _ in range(300)]
        assert {future.result(20).partition for future in futures} == {0, 1, 2}
    with Producer(bootstrap_servers=bootstrap, partitioner_class=round_robin_partitioner()) as producer:
        turns = [producer.send(topic, b"x", key=b"k").result(20).partition for _ in range(6)]
    assert turns == [0, 1, 2, 0, 1, 2]


def test_a_batch_that_is_too_large_for_the_broker_is_split(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"max.message.bytes": "2000"})
    outcomes: list[int] = []
    with Producer(bootstrap_servers=bootstrap, linger_ms=200) as producer:
        futures = [
            producer.send(
                topic,
                b"%04d" % number + b"x" * 96,
                on_delivery=lambda metadata, _: outcomes.append(metadata.offset),
            )
            for number in range(100)
        ]
        assert [future.result(20).offset for future in futures] == list(range(100))
        assert producer.metrics()["batch-split-total"] > 0
        with pytest.raises(KafkaError) as refused:
            producer.send(topic, b"x" * 3000).result(20)
        assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
        assert producer.send(topic, b"and on").result(20).offset == 100
    assert sorted(outcomes) == list(range(100))
    assert [int((row[2] or b"")[:4]) for row in read(bootstrap, topic)[:100]] == list(range(100))


def test_interceptors_and_serializers(bootstrap: str, topic: str) -> None:
    seen: list[Any] = []

    class Upper:
        def on_send(self, record: Any) -> Any:
            return record._replace(value=record.value.upper())

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            seen.append((metadata.offset, error))

    with Producer(
        bootstrap_servers=bootstrap, value_serializer=str.encode, interceptor_classes=[Upper()]
    ) as producer:
        producer.send(topic, "quiet").result(20)
    assert seen == [(0, None)]
    assert read(bootstrap, topic)[0][2] == b"QUIET"


def test_acks_zero_gives_no_offset(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, acks=0) as producer:
        assert producer.send(topic, b"v").result(20).offset == -1
        producer.flush(20)
        deadline = time.monotonic() + 20
        while not (rows := read(bootstrap, topic)) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert [row[2] for row in rows] == [b"v"]


def test_a_partition_that_is_added_later_is_found(bootstrap: str, make_topic: MakeTopic) -> None:
    """As Java's producer: it waits at most max.block.ms for a partition that is not in the metadata."""
    topic = make_topic(partitions=1)
    with Producer(bootstrap_servers=bootstrap) as producer, Admin(bootstrap_servers=bootstrap) as admin:
        producer.send(topic, b"before", partition=0).result(20)
        admin.create_partitions({topic: 3})
        assert producer.send(topic, b"after", partition=2).result(20).partition == 2
        assert producer.send(topic, b"between", partition=1).result(20).partition == 1
    assert sorted(row[:3:2] for row in read(bootstrap, topic, partitions=3)) == [
        (0, b"before"),
        (1, b"between"),
        (2, b"after"),
    ]


def test_a_partition_that_does_not_exist_is_a_timeout(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    with Producer(bootstrap_servers=bootstrap, max_block_ms=2000) as producer:
        producer.send(topic, b"", partition=1).result(20)
        with pytest.raises(KafkaTimeoutError, match=r"has 2 partitions; there is no partition 2$"):
            producer.send(topic, b"", partition=2)
        with pytest.raises(KafkaError, match="no partition -1"):
            producer.send(topic, b"", partition=-1)


def test_a_closed_producer_raises_an_error(bootstrap: str, topic: str) -> None:
    producer = Producer(bootstrap_servers=bootstrap)
    last = producer.send(topic, b"v")
    producer.close()
    producer.close()
    assert last.result(0).offset == 0
    with pytest.raises(ClosedError):
        producer.send(topic, b"w")


def test_many_threads_share_a_producer(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, buffer_memory=200_000) as producer:

        def work(name: int) -> None:
            for number in range(5000):
                producer.send(topic, b"%d-%d" % (name, number))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    values = [row[2] or b"" for row in read(bootstrap, topic)]
    assert len(values) == 20_000
    for name in range(4):
        own = [value for value in values if value.startswith(b"%d-" % name)]
        assert own == [b"%d-%d" % (name, number) for number in range(5000)]


def test_nothing_is_lost_or_doubled_when_the_broker_is_killed(own_broker: BrokerProcess) -> None:
    ConfluentAdmin(own_broker.bootstrap).create_topic("killed", 2)
    futures: list[Any] = []
    stop = threading.Event()
    with Producer(bootstrap_servers=own_broker.bootstrap, batch_size=2000, linger_ms=0) as producer:

        def work() -> None:
            number = 0
            while not stop.is_set():
                futures.append(producer.send("killed", b"%d" % number, partition=number % 2))
                number += 1
                if number % 50 == 0:
                    time.sleep(0.001)

        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(3):
            time.sleep(0.5)
            own_broker.restart(signal.SIGKILL)
        time.sleep(0.3)
        stop.set()
        thread.join()
        producer.flush(60)
        assert all(future.exception(0) is None for future in futures)
    rows = read(own_broker.bootstrap, "killed", 2)
    for partition in (0, 1):
        numbers = [int(row[2] or b"") for row in rows if row[0] == partition]
        assert numbers == list(range(partition, len(futures), 2))


def test_many_batches_are_written_once_and_in_order_if_acknowledgements_are_lost(
    bootstrap: str, topic: str
) -> None:
    """Batches of one partition that wait take the short way, until a connection breaks, and again later."""
    count = 60_000
    with LossyProxy(bootstrap, 0) as proxy, Producer(bootstrap_servers=proxy.bootstrap) as producer:
        futures = []
        for number in range(count):
            futures.append(producer.send(topic, b"%d" % number + bytes(90)))
            if number % 10_000 == 5_000:
                proxy.acks_left_to_lose = 1
        producer.flush(120)
        assert [future.result(0).offset for future in futures] == list(range(count))
        assert proxy.acks_lost >= 1
    values = [int((row[2] or b"").rstrip(b"\0")) for row in read(bootstrap, topic)]
    assert values == list(range(count))


@pytest.mark.usefixtures("_adding_partitions")
def test_transactions_are_seen_whole_or_not_at_all(quick_bootstrap: str, make_quick_topic: MakeTopic) -> None:
    topic = make_quick_topic(partitions=2)
    with Producer(bootstrap_servers=quick_bootstrap, transactional_id=f"of-{topic}") as producer:
        with pytest.raises(KafkaError, match="init_transactions"):
            producer.send(topic, b"too early")
        producer.init_transactions()
        for round_number in range(6):
            producer.begin_transaction()
            for number in range(20):
                producer.send(topic, b"%d-%d" % (round_number, number), partition=number % 2)
            if round_number % 2:
                producer.flush(20)
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        with pytest.raises(KafkaError, match="begin_transaction"):
            producer.send(topic, b"between two")
    values = {row[2] for row in read(quick_bootstrap, topic, 2)}
    assert values == {b"%d-%d" % (number, each) for number in (0, 2, 4) for each in range(20)}
    assert len(read(quick_bootstrap, topic, 2, "read_uncommitted")) == 120


@pytest.mark.usefixtures("_adding_partitions")
def test_offsets_are_committed_with_the_transaction(
    quick_bootstrap: str, make_quick_topic: MakeTopic
) -> None:
    topic = make_quick_topic()
    group = f"group-of-{topic}"
    with Producer(bootstrap_servers=quick_bootstrap, transactional_id=f"of-{topic}") as producer:
        producer.init_transactions()
        for offset, is_kept in ((5, True), (9, False)):
            producer.begin_transaction()
            producer.send(topic, b"v")
            producer.send_offsets_to_transaction({OwnPartition(topic, 0): OffsetAndMetadata(offset)}, group)
            if is_kept:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    consumer = Consumer({"bootstrap.servers": quick_bootstrap, "group.id": group})
    try:
        assert consumer.committed([TopicPartition(topic, 0)], 20)[0].offset == 5
    finally:
        consumer.close()


@pytest.mark.usefixtures("_adding_partitions")
def test_an_older_producer_is_fenced(quick_bootstrap: str, make_quick_topic: MakeTopic) -> None:
    topic = make_quick_topic()
    settings = {"bootstrap.servers": quick_bootstrap, "transactional.id": f"of-{topic}"}
    with Producer(settings) as older, Producer(settings) as newer:
        older.init_transactions()
        older.begin_transaction()
        older.send(topic, b"lost").result(20)
        newer.init_transactions()
        late = older.send(topic, b"late")
        with pytest.raises(ProducerFencedError, match="a newer producer"):
            older.commit_transaction()
        assert isinstance(late.exception(20), KafkaError)
        with pytest.raises(ProducerFencedError):
            older.abort_transaction()
        newer.begin_transaction()
        newer.send(topic, b"kept")
        newer.commit_transaction()
    assert [row[2] for row in read(quick_bootstrap, topic)] == [b"kept"]


@pytest.mark.usefixtures("_adding_partitions")
def test_a_transaction_with_a_failed_record_can_only_be_aborted(
    quick_bootstrap: str, make_quick_topic: MakeTopic
) -> None:
    topic = make_quick_topic(configs={"max.message.bytes": "2000"})
    with Producer(bootstrap_servers=quick_bootstrap, transactional_id=f"of-{topic}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"first").result(20)
        refused = producer.send(topic, b"x" * 3000)
        with pytest.raises(TransactionAbortableError, match="must be aborted"):
            producer.commit_transaction()
        error = refused.exception(0)
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(TransactionAbortableError):
            producer.send(topic, b"no more")
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"again")
        producer.commit_transaction()
    assert [row[2] for row in read(quick_bootstrap, topic)] == [b"again"]


def test_closing_aborts_an_open_transaction(quick_bootstrap: str, make_quick_topic: MakeTopic) -> None:
    topic = make_quick_topic()
    with Producer(bootstrap_servers=quick_bootstrap, transactional_id=f"of-{topic}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"given up").result(20)
    assert read(quick_bootstrap, topic) == []
