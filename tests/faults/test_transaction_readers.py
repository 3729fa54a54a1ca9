"""Committed and aborted transactions, interleaved on several partitions: consumers with read_committed
see exactly the committed records, with every client, after restarts, kills, retention and compaction."""

import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from tests.clients.broker_process import BrokerProcess, running_broker
from tests.clients.client import wait_until
from tests.clients.confluent_client import ConfluentAdmin
from tests.clients.consumers import CONSUMERS
from tests.clients.reading import ends_of, everything
from tests.faults.transaction_stage import (
    QUICK,
    aborted,
    connected,
    ends,
    log_start,
    settled_topic,
    wait_until_nothing_hangs,
    write,
)
from tests.support.raw_calls import Topic
from tests.support.raw_client import RawClient
from tests.support.raw_transactions import NEW, OLD, RawTransactional

from barnabas.client.consumer import Consumer
from barnabas.client.types import TopicPartition

PARTITIONS = 3
WRITERS = 4
STEPS = 260
# A few segments of the smallest size for each partition.
PADDING = b"." * 40_000
PATIENCE_SECONDS = 40.0
# A transaction in the compacted topic that commits and comes after all others.
COMMITTED_TURN = 1000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path, QUICK) as broker:
        yield broker
        assert "Traceback" not in broker.log_text(), broker.log_tail()


# ---- readers


def read_by_own_consumer(bootstrap: str, topic: str, partitions: int) -> list[bytes]:
    stops = ends_of(bootstrap, topic, partitions, "read_committed")
    places = [TopicPartition(topic, number) for number in range(partitions)]
    values: list[bytes] = []
    with Consumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(places)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(consumer.position(place) < stops[place.partition] for place in places):
            assert time.monotonic() < deadline, "the end is never reached"
            values += [record.value for record in consumer.poll(0.1)]
    return values


def read_by_kafka_python(bootstrap: str, topic: str, partitions: int) -> list[bytes]:
    """By assignment; the other libraries join a group."""
    return everything(bootstrap, topic, partitions)


def read_by_group(library: str) -> Callable[[str, str, int], list[bytes]]:
    return lambda bootstrap, topic, partitions: everything(bootstrap, topic, partitions, library=library)


READERS: dict[str, Callable[[str, str, int], list[bytes]]] = {
    "barnabas": read_by_own_consumer,
    "kafka-python by assignment": read_by_kafka_python,
    **{library: read_by_group(library) for library in CONSUMERS},
}


# ---- writers


class Interleaved:
    """Writers of both versions whose transactions overlap, and a list of everything they wrote."""

    def __init__(self, client: RawClient, topic: Topic) -> None:
        self.client = client
        self.topic = topic
        self.chance = random.Random(31)
        # The committed records of each partition: (offset, value).
        self.committed: dict[int, list[tuple[int, bytes]]] = {number: [] for number in range(PARTITIONS)}
        # The aborted transactions of each partition: (producer id, first offset, offset of the marker).
        self.aborted: dict[int, list[tuple[int, int, int]]] = {number: [] for number in range(PARTITIONS)}
        self._open: dict[RawTransactional, list[tuple[int, int, bytes]]] = {}
        self._count = 0

    def run(self, steps: int) -> None:
        writers = [
            RawTransactional(self.client, f"writer {number}", OLD if number % 2 else NEW)
            for number in range(WRITERS)
        ]
        for writer in writers:
            writer.init()
        for _ in range(steps):
            writer = self.chance.choice(writers)
            if self._open.get(writer) and self.chance.random() < 0.3:
                self._end(writer, self.chance.random() < 0.5)
            else:
                self._write(writer)
        for writer in list(self._open):
            self._end(writer, False)
        for records in self.committed.values():
            records.sort()

    def _write(self, writer: RawTransactional) -> None:
        partition = self.chance.randrange(PARTITIONS)
        offset = ends(self.client, self.topic, partition).high
        self._count += 1
        value = b"%d %d " % (partition, self._count)
        write(writer, self.topic, value + PADDING, [partition])
        self._open.setdefault(writer, []).append((partition, offset, value))

    def _end(self, writer: RawTransactional, commits: bool) -> None:
        written, producer_id = self._open.pop(writer), writer.id
        markers = {partition: ends(self.client, self.topic, partition).high for partition, _, _ in written}
        assert writer.end(commits) == 0
        for partition, marker in markers.items():
            wait_until(
                lambda partition=partition, marker=marker: (  # type: ignore[misc]
                    ends(self.client, self.topic, partition).high > marker
                ),
                "the marker is written",
            )
        if commits:
            for partition, offset, value in written:
                self.committed[partition].append((offset, value))
            return
        for partition, marker in markers.items():
            first = min(offset for number, offset, _ in written if number == partition)
            self.aborted[partition].append((producer_id, first, marker))

    def expected_aborted(self, partition: int, offset: int) -> list[tuple[int, int]]:
        """The aborted transactions that a fetch of everything from `offset` on must list."""
        return sorted((writer, first) for writer, first, last in self.aborted[partition] if last >= offset)


def aborted_everywhere(client: RawClient, topic: Topic) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """The aborted transactions that fetches from many offsets list."""
    return {
        (partition, offset): aborted(client, topic, partition, offset)
        for partition in range(PARTITIONS)
        for offset in range(log_start(client, topic, partition), ends(client, topic, partition).high, 7)
    }


def judge(bootstrap: str, topic: str, expected: dict[int, list[bytes]], *readers: str) -> None:
    for reader in readers or READERS:
        values: dict[int, list[bytes]] = {partition: [] for partition in expected}
        for value in READERS[reader](bootstrap, topic, len(expected)):
            values[int(value.split()[0])].append(value.rstrip(b"."))
        assert values == expected, reader


def test_aborted_ranges_are_the_same_after_restarts_and_retention(broker: BrokerProcess) -> None:
    with connected(broker.bootstrap) as client:
        topic = settled_topic(client, PARTITIONS, segment_bytes="1048576")
        history = Interleaved(client, topic)
        history.run(STEPS)
        wait_until_nothing_hangs(client, topic, PARTITIONS)
        before = aborted_everywhere(client, topic)
        for partition in range(PARTITIONS):
            named = {pair for (number, _), pairs in before.items() if number == partition for pair in pairs}
            assert sorted(named) == history.expected_aborted(partition, 0)
    expected = {
        partition: [value for _, value in records] for partition, records in history.committed.items()
    }
    judge(broker.bootstrap, topic.name, expected)
    for with_signal in (signal.SIGTERM, signal.SIGKILL):
        broker.restart(with_signal)
        with connected(broker.bootstrap) as client:
            assert aborted_everywhere(client, topic) == before
        judge(broker.bootstrap, topic.name, expected, "barnabas")
    _after_retention(broker, topic, history)


def _after_retention(broker: BrokerProcess, topic: Topic, history: Interleaved) -> None:
    broker.overrides["log.retention.bytes"] = "1100000"
    broker.restart(signal.SIGTERM)
    with connected(broker.bootstrap) as client:

        def starts() -> dict[int, int]:
            return {number: log_start(client, topic, number) for number in range(PARTITIONS)}

        wait_until(lambda: min(starts().values()) > 0, "old segments are deleted", PATIENCE_SECONDS)
        first = starts()
        left = aborted_everywhere(client, topic)
        for partition in range(PARTITIONS):
            named = {pair for (number, _), pairs in left.items() if number == partition for pair in pairs}
            assert named <= set(history.expected_aborted(partition, first[partition]))
    expected = {
        partition: [value for offset, value in records if offset >= first[partition]]
        for partition, records in history.committed.items()
    }
    judge(broker.bootstrap, topic.name, expected, "barnabas", "confluent-kafka")
    broker.restart(signal.SIGKILL)
    with connected(broker.bootstrap) as client:
        assert aborted_everywhere(client, topic) == left
    judge(broker.bootstrap, topic.name, expected, "barnabas")


def test_a_compacted_topic_keeps_the_last_committed_value_of_each_key(broker: BrokerProcess) -> None:
    name = "compacted"
    configs = {
        "cleanup.policy": "compact",
        "segment.ms": "200",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "100",
    }
    ConfluentAdmin(broker.bootstrap).create_topic(name, 2, configs=configs)
    writers = [_confluent(broker.bootstrap, f"writer {number}") for number in range(2)]
    latest: dict[bytes, bytes] = {}
    for turn in range(50):
        # Two are committed, then two aborted; each writer does both in turn.
        commits = turn % 4 < 2
        written = _transaction(writers[turn % 2], name, turn, commits)
        latest |= written if commits else {}

    def is_compacted() -> bool:
        latest.update(_transaction(writers[0], name, COMMITTED_TURN, True))
        return len(everything(broker.bootstrap, name, 2, "read_uncommitted")) <= 3 * len(latest)

    wait_until(is_compacted, "the topic is compacted", PATIENCE_SECONDS)
    for reader in READERS:
        _judge_compacted(broker.bootstrap, name, reader, latest)
    broker.restart(signal.SIGKILL)
    _judge_compacted(broker.bootstrap, name, "barnabas", latest)


def _judge_compacted(bootstrap: str, topic: str, reader: str, latest: dict[bytes, bytes]) -> None:
    records = READERS[reader](bootstrap, topic, 2)
    assert [value for value in records if int(value.split()[2]) % 4 >= 2] == [], (
        f"{reader} saw what was aborted"
    )
    assert {value.split()[1]: value for value in records} == latest, reader


def _confluent(bootstrap: str, transactional_id: str) -> confluent_kafka.Producer:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "linger.ms": 0}
    )
    producer.init_transactions(PATIENCE_SECONDS)
    return producer


def _transaction(
    producer: confluent_kafka.Producer, topic: str, turn: int, commits: bool
) -> dict[bytes, bytes]:
    """A record for two of seven keys, each in a partition of its own: key -> value."""
    written = {}
    producer.begin_transaction()
    for number in (turn % 7, (turn * 3 + 1) % 7):
        key = b"key%d" % number
        written[key] = b"%d %s %d" % (number % 2, key, turn)
        producer.produce(topic, written[key], key, partition=number % 2)
    assert producer.flush(PATIENCE_SECONDS) == 0
    if commits:
        producer.commit_transaction(PATIENCE_SECONDS)
    else:
        producer.abort_transaction(PATIENCE_SECONDS)
    return written
