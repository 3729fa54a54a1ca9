"""Our consumer against a broker: reading, seeking, committing, groups of both protocols, a killed broker."""

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.clients.broker_process import BrokerProcess
from tests.clients.confluent_client import ConfluentAdmin
from tests.clients.conftest import MakeTopic

from barnabas.client.consumer import Consumer, ConsumerRecord, ConsumerRecords, RebalanceListener
from barnabas.client.errors import (
    ClosedError,
    CommitFailedError,
    ConcurrentAccessError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    WakeupError,
)
from barnabas.client.types import OffsetAndMetadata, TopicPartition

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])
PATIENCE_SECONDS = 30.0
MakeConsumer = Callable[..., Consumer]


@pytest.fixture
def consumer_of(quick_bootstrap: str, topic_name: str) -> Iterator[MakeConsumer]:
    """consumer_of(group_id=..., ...) on the quick broker, closed at the end; its group is the test's own."""
    made: list[Consumer] = []

    def make(bootstrap: str = quick_bootstrap, **settings: Any) -> Consumer:
        how = {"group_id": f"of-{topic_name}", "auto_offset_reset": "earliest", **settings}
        made.append(Consumer(bootstrap_servers=bootstrap, **how))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close()


def fill(bootstrap: str, topic: str, count: int, partition: int = 0, first: int = 0, **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings})
    for number in range(first, first + count):
        producer.produce(topic, b"%d" % number, partition=partition, headers=[("n", b"%d" % number)])
    assert producer.flush(PATIENCE_SECONDS) == 0


def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records came"
        records += consumer.poll(0.2)
    return records


def numbers(records: list[ConsumerRecord]) -> list[int]:
    return [int(record.value) for record in records]


def poll_until(condition: Callable[[], bool], *consumers: Consumer) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, [consumer.assignment() for consumer in consumers]
        for consumer in consumers:
            consumer.poll(0.02)


def test_records_are_complete_and_in_order(
    quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic()
    fill(quick_bootstrap, topic, 1200)
    consumer = consumer_of(max_poll_records=100)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    polled = consumer.poll(PATIENCE_SECONDS)
    assert 0 < len(polled) <= 100
    records = [*polled, *read(consumer, 1200 - len(polled))]
    assert numbers(records) == [record.offset for record in records] == list(range(1200))
    assert records[7].headers == (("n", b"7"),)
    assert (records[7].topic, records[7].partition, records[7].serialized_value_size) == (topic, 0, 1)
    assert consumer.position(partition) == 1200
    metrics = consumer.metrics()
    assert (metrics["records-lag-max"], metrics["records-lead-min"]) == (0, 1200)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records(
    codec: str, quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic()
    fill(quick_bootstrap, topic, 500, **{"compression.type": codec})
    consumer = consumer_of()
    consumer.assign([TopicPartition(topic, 0)])
    assert numbers(read(consumer, 500)) == list(range(500))


def test_seeking_and_looking_up_offsets(
    quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic()
    before_ms = int(time.time() * 1000) - 60_000
    fill(quick_bootstrap, topic, 50)
    consumer, partition = consumer_of(), TopicPartition(topic, 0)
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 50}
    by_time = consumer.offsets_for_times({partition: before_ms})[partition]
    assert by_time is not None
    assert by_time.offset == 0
    assert consumer.offsets_for_times({partition: before_ms + 10**9}) == {partition: None}
    consumer.assign([partition])
    consumer.seek(partition, 45)
    assert numbers(read(consumer, 5)) == [45, 46, 47, 48, 49]
    consumer.seek_to_beginning()
    assert numbers(read(consumer, 50))[0] == 0
    consumer.seek_to_end(partition)
    assert consumer.position(partition) == 50
    consumer.seek(partition, 10)
    consumer.pause(partition)
    assert not consumer.poll(0.3)
    assert consumer.paused() == {partition}
    consumer.resume(partition)
    assert numbers(read(consumer, 40))[0] == 10


def test_auto_offset_reset(
    quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic()
    fill(quick_bootstrap, topic, 5)
    partition = TopicPartition(topic, 0)
    latest = consumer_of(auto_offset_reset="latest")
    latest.assign([partition])
    assert latest.position(partition) == 5
    none = consumer_of(auto_offset_reset="none")
    none.assign([partition])
    with pytest.raises(NoOffsetForPartitionError, match=r"auto\.offset\.reset is none"):
        none.poll(PATIENCE_SECONDS)
    none.seek(partition, 99)
    with pytest.raises(OffsetOutOfRangeError):
        none.poll(PATIENCE_SECONDS)
    earliest = consumer_of()
    earliest.assign([partition])
    earliest.seek(partition, 99)
    assert numbers(read(earliest, 5)) == [0, 1, 2, 3, 4]


def test_read_committed_leaves_out_aborted_records(
    quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic()
    producer = Producer({"bootstrap.servers": quick_bootstrap, "transactional.id": topic})
    producer.init_transactions(PATIENCE_SECONDS)
    for start, commits in ((0, True), (10, False), (20, True)):
        producer.begin_transaction()
        for number in range(start, start + 3):
            producer.produce(topic, b"%d" % number, partition=0)
        producer.flush(PATIENCE_SECONDS)
        (producer.commit_transaction if commits else producer.abort_transaction)(PATIENCE_SECONDS)
    for level, expected in (
        ("read_committed", [0, 1, 2, 20, 21, 22]),
        ("read_uncommitted", [0, 1, 2, 10, 11, 12, 20, 21, 22]),
    ):
        consumer = consumer_of(isolation_level=level)
        consumer.assign([TopicPartition(topic, 0)])
        assert numbers(read(consumer, len(expected))) == expected


@PROTOCOLS
def test_a_group_shares_partitions_and_continues_from_its_commits(
    protocol: str, quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic(partitions=4)
    first = consumer_of(group_protocol=protocol)
    first.subscribe([topic])
    poll_until(lambda: len(first.assignment()) == 4, first)
    second = consumer_of(group_protocol=protocol)
    second.subscribe([topic])
    poll_until(lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second)
    assert not first.assignment() & second.assignment()
    for partition in range(4):
        fill(quick_bootstrap, topic, 25, partition)
    records = [read(consumer, 50) for consumer in (first, second)]
    assert len({(record.partition, record.offset) for each in records for record in each}) == 100
    first.commit_sync()
    second.close()
    poll_until(lambda: len(first.assignment()) == 4, first)
    committed = first.committed([TopicPartition(topic, index) for index in range(4)])
    assert {place.offset for place in committed.values() if place is not None} == {25}
    fill(quick_bootstrap, topic, 5, first=100)
    assert numbers(read(first, 5)) == [100, 101, 102, 103, 104]


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_classic_assignors_rebalance_as_members_come_and_go(
    assignor: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic(partitions=6)
    members = [
        consumer_of(partition_assignment_strategy=[assignor], heartbeat_interval_ms=100) for _ in range(3)
    ]
    for member in members:
        member.subscribe([topic])
    poll_until(lambda: [len(member.assignment()) for member in members] == [2, 2, 2], *members)
    members[0].close()
    left = members[1:]
    poll_until(lambda: [len(member.assignment()) for member in left] == [3, 3], *left)


@PROTOCOLS
def test_members_in_threads_lose_no_records_while_one_leaves(
    protocol: str, quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic, count = make_quick_topic(partitions=3), 300
    seen: set[tuple[int, int]] = set()
    leaves, ends = threading.Event(), threading.Event()
    problems: list[Exception] = []

    def work(stop: threading.Event) -> None:
        try:
            with consumer_of(group_protocol=protocol, heartbeat_interval_ms=100) as consumer:
                consumer.subscribe([topic])
                while not stop.is_set():
                    seen.update((record.partition, record.offset) for record in consumer.poll(0.05))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(stop,)) for stop in (leaves, ends, ends)]
    for thread in threads:
        thread.start()
    for partition in range(3):
        fill(quick_bootstrap, topic, count, partition)
    leaves.set()
    threads[0].join(PATIENCE_SECONDS)
    for partition in range(3):
        fill(quick_bootstrap, topic, count, partition)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(seen) < 6 * count and time.monotonic() < deadline and not problems:
        time.sleep(0.02)
    ends.set()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert problems == []
    assert len(seen) == 6 * count


def test_iterating_continues_over_several_polls(
    quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic()
    fill(quick_bootstrap, topic, 50)
    consumer = consumer_of(max_poll_records=7)
    consumer.assign([TopicPartition(topic, 0)])
    assert numbers(list(islice(consumer, 50))) == list(range(50))


class RecordingListener(RebalanceListener):
    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []
        self.threads: set[int] = set()

    def _record(self, what: str, partitions: list[TopicPartition]) -> None:
        self.calls.append((what, [each.partition for each in partitions]))
        self.threads.add(threading.get_ident())

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self._record("assigned", partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._record("revoked", partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self._record("lost", partitions)


@PROTOCOLS
def test_listeners_are_called_by_the_polling_thread(
    protocol: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic, listener = make_quick_topic(partitions=2), RecordingListener()
    consumer = consumer_of(group_protocol=protocol)
    consumer.subscribe([topic], listener)
    poll_until(lambda: len(consumer.assignment()) == 2, consumer)
    consumer.close()
    assert [call for call in listener.calls if call[1]] == [("assigned", [0, 1]), ("revoked", [0, 1])]
    assert listener.threads == {threading.get_ident()}


@PROTOCOLS
def test_a_consumer_that_does_not_poll_loses_its_partitions_and_cannot_commit(
    protocol: str, quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic, listener = make_quick_topic(), RecordingListener()
    fill(quick_bootstrap, topic, 3)
    slow = consumer_of(
        group_protocol=protocol,
        max_poll_interval_ms=1000,
        heartbeat_interval_ms=200,
        enable_auto_commit=False,
    )
    slow.subscribe([topic], listener)
    read(slow, 3)
    other = consumer_of(group_protocol=protocol)
    other.subscribe([topic])
    poll_until(lambda: len(other.assignment()) == 1, other)
    with pytest.raises(CommitFailedError):
        slow.commit_sync()
    assert ("lost", [0]) not in listener.calls
    slow.poll(0.1)
    assert ("lost", [0]) in listener.calls


def test_a_consumer_outside_the_group_cannot_commit(
    make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic()
    member = consumer_of()
    member.subscribe([topic])
    poll_until(lambda: len(member.assignment()) == 1, member)
    lone = consumer_of()
    with pytest.raises(CommitFailedError, match="another consumer"):
        lone.commit_sync({TopicPartition(topic, 0): OffsetAndMetadata(1)})


def test_commits_of_all_kinds(
    quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic()
    fill(quick_bootstrap, topic, 10)
    partition = TopicPartition(topic, 0)
    consumer = consumer_of(enable_auto_commit=False)
    assert consumer.committed([partition]) == {partition: None}
    consumer.commit_sync({partition: OffsetAndMetadata(4, "a note")})
    assert consumer.committed([partition])[partition] == OffsetAndMetadata(4, "a note")
    consumer.assign([partition])
    answers: list[Any] = []
    assert numbers(read(consumer, 6))[0] == 4
    consumer.commit_async(callback=lambda offsets, error: answers.append((offsets[partition].offset, error)))
    poll_until(lambda: bool(answers), consumer)
    assert answers == [(10, None)]
    consumer.close()
    auto_committing = consumer_of()
    auto_committing.assign([partition])
    auto_committing.seek(partition, 7)
    read(auto_committing, 3)
    auto_committing.close()
    after = consumer_of()
    after.assign([partition])
    assert after.position(partition) == 10


def test_a_pattern_finds_topics_that_are_created_later(
    quick_bootstrap: str, topic_name: str, consumer_of: MakeConsumer
) -> None:
    consumer = consumer_of(metadata_max_age_ms=300, heartbeat_interval_ms=100)
    consumer.subscribe(re.compile(re.escape(topic_name) + "-.*"))
    consumer.poll(0.1)
    for suffix in ("a", "b"):
        ConfluentAdmin(quick_bootstrap).create_topic(f"{topic_name}-{suffix}", 1)
        expected = TopicPartition(f"{topic_name}-{suffix}", 0)
        poll_until(lambda expected=expected: expected in consumer.assignment(), consumer)
    assert consumer.subscription() == {f"{topic_name}-a", f"{topic_name}-b"}


@PROTOCOLS
def test_a_static_member_gets_its_partitions_back(
    protocol: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic(partitions=4)
    members = [consumer_of(group_protocol=protocol, group_instance_id=name) for name in ("one", "two")]
    for member in members:
        member.subscribe([topic])
    poll_until(lambda: [len(member.assignment()) for member in members] == [2, 2], *members)
    had = members[0].assignment()
    members[0].close()
    again = consumer_of(group_protocol=protocol, group_instance_id="one")
    again.subscribe([topic])
    poll_until(lambda: again.assignment() == had, again, members[1])
    assert len(members[1].assignment()) == 2


def test_wakeup_and_use_by_two_threads(make_quick_topic: MakeTopic, consumer_of: MakeConsumer) -> None:
    consumer = consumer_of()
    consumer.assign([TopicPartition(make_quick_topic(), 0)])
    outcomes: list[Exception] = []

    def waiting() -> None:
        while not any(isinstance(outcome, WakeupError) for outcome in outcomes):
            try:
                consumer.poll(PATIENCE_SECONDS)
            except (WakeupError, ConcurrentAccessError) as error:
                outcomes.append(error)

    thread = threading.Thread(target=waiting)
    thread.start()
    deadline = time.monotonic() + PATIENCE_SECONDS
    with pytest.raises(ConcurrentAccessError):
        while time.monotonic() < deadline:
            consumer.assignment()
    consumer.wakeup()
    thread.join(PATIENCE_SECONDS)
    assert isinstance(outcomes[-1], WakeupError)
    consumer.close()
    with pytest.raises(ClosedError):
        consumer.poll()


def test_topics_and_partitions_exclude_each_other(
    make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    consumer, topic = consumer_of(), make_quick_topic()
    with pytest.raises(RuntimeError, match="before polling"):
        consumer.poll()
    consumer.subscribe([topic])
    with pytest.raises(RuntimeError, match="before changing"):
        consumer.assign([TopicPartition(topic, 0)])
    consumer.unsubscribe()
    consumer.assign([TopicPartition(topic, 0)])
    with pytest.raises(RuntimeError, match="before changing"):
        consumer.subscribe([topic])
    with pytest.raises(KafkaError, match=r"group\.id"):
        consumer_of(group_id=None).subscribe([topic])


class TimeToLive:
    """Leaves out records that are too old."""

    def __init__(self, oldest_ms: int) -> None:
        self.oldest_ms = oldest_ms
        self.committed: list[Any] = []

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        return ConsumerRecords(
            {
                partition: [
                    record for record in records.records(partition) if record.timestamp >= self.oldest_ms
                ]
                for partition in records.partitions()
            }
        )

    def on_commit(self, offsets: Any) -> None:
        self.committed.append(offsets)


def test_interceptors_and_deserializers(
    quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic, now_ms = make_quick_topic(), int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": quick_bootstrap})
    for number, age_ms in enumerate((50_000, 0, 50_000, 0)):
        producer.produce(topic, b"%d" % number, partition=0, timestamp=now_ms - age_ms)
    producer.flush(PATIENCE_SECONDS)
    interceptor = TimeToLive(now_ms - 10_000)
    consumer = consumer_of(interceptor_classes=[interceptor], value_deserializer=int)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    assert [record.value for record in read(consumer, 2)] == [1, 3]
    consumer.commit_sync()
    assert interceptor.committed == [{partition: OffsetAndMetadata(4, "", 0)}]


def test_arrow_tables(quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer) -> None:
    pytest.importorskip("pyarrow")
    topic = make_quick_topic()
    fill(quick_bootstrap, topic, 300)
    consumer = consumer_of()
    consumer.assign([TopicPartition(topic, 0)])
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(rows) < 300 and time.monotonic() < deadline:
        rows += consumer.poll_arrow(0.2).to_pylist()
    assert [int(row["value"]) for row in rows] == [row["offset"] for row in rows] == list(range(300))
    assert rows[5]["headers"] == [{"key": "n", "value": b"5"}]
    assert (rows[5]["topic"], rows[5]["partition"], rows[5]["key"]) == (topic, 0, None)


@PROTOCOLS
def test_a_broker_that_is_killed_and_restarted(
    protocol: str, own_quick_broker: BrokerProcess, topic_name: str, consumer_of: MakeConsumer
) -> None:
    ConfluentAdmin(own_quick_broker.bootstrap).create_topic(topic_name, 1)
    fill(own_quick_broker.bootstrap, topic_name, 20)
    consumer = consumer_of(own_quick_broker.bootstrap, group_protocol=protocol, heartbeat_interval_ms=200)
    consumer.subscribe([topic_name])
    assert numbers(read(consumer, 20)) == list(range(20))
    consumer.commit_sync()
    own_quick_broker.restart(signal.SIGKILL)
    fill(own_quick_broker.bootstrap, topic_name, 20, first=20)
    assert numbers(read(consumer, 20)) == list(range(20, 40))
    consumer.commit_sync()
