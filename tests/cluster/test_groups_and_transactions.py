"""Consumer groups and transactions that go on when the broker of their coordinator dies."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from tests.clients.client import wait_until
from tests.clients.consumers import ConsumerSetup
from tests.clients.members import Member
from tests.clients.transactional import TRANSACTIONAL, Fenced, Refused, Transactional
from tests.cluster.conftest import MakeTopic
from tests.cluster.writers import Writer

import barnabas
from barnabas.client.errors import KafkaError
from barnabas.coordination.hashing import partition_for
from barnabas.testing import Cluster

PARTITIONS = 3


def coordinator_of(cluster: Cluster, group: str) -> int:
    with cluster.admin() as admin:
        return admin.describe_consumer_groups([group])[group].coordinator.id


class OwnMember:
    """A consumer of our own in a thread, with the part of Member's interface that these tests need."""

    def __init__(self, bootstrap: str, group: str, topic: str, protocol: str) -> None:
        self.library = f"barnabas ({protocol})"
        self.values: list[bytes] = []
        self.failure: BaseException | None = None
        self._consumer = barnabas.Consumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            group_protocol=protocol,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            request_timeout_ms=5000,
        )
        self._consumer.subscribe([topic])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._guarded, daemon=True)
        self._thread.start()

    def _guarded(self) -> None:
        try:
            while not self._stopping.is_set():
                records = self._consumer.poll(0.1)
                self.values += [record.value or b"" for record in records]
                if records:
                    self._commit()
        except BaseException as failure:  # kept for the test, which raises it
            self.failure = failure
        finally:
            self._consumer.close()

    def _commit(self) -> None:
        try:
            self._consumer.commit_sync()
        except KafkaError as error:
            # After the loss of the coordinator a rebalance may take the partitions away: read them again.
            if error.code.name not in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS"):
                raise

    def leave(self) -> None:
        self._stopping.set()
        self._thread.join(45)
        assert not self._thread.is_alive(), "the member does not end"


def foreign_member(cluster: Cluster, library: str, topic: str, protocol: str = "classic") -> Member:
    setup = ConsumerSetup(
        f"group of {library} {protocol} {topic}",
        (topic,),
        protocol=protocol,
        assignor="range" if protocol == "classic" else "uniform",
        auto_commit=True,
    )
    return Member(library, cluster.bootstrap, setup)


@pytest.fixture
def members(cluster: Cluster) -> Iterator[list[Member | OwnMember]]:
    joined: list[Member | OwnMember] = []
    yield joined
    for member in joined:
        member.leave()


def test_members_read_on_when_their_coordinator_dies(
    cluster: Cluster, make_topic: MakeTopic, members: list[Member | OwnMember]
) -> None:
    """A group for each library and protocol; all coordinators that were on one broker move."""
    topic = make_topic(PARTITIONS)
    members += [foreign_member(cluster, library, topic) for library in ("confluent-kafka", "kafka-python")]
    members += [foreign_member(cluster, "aiokafka", topic)]
    members += [foreign_member(cluster, "confluent-kafka", topic, "consumer")]
    own_groups = {protocol: f"own {protocol} {topic}" for protocol in ("classic", "consumer")}
    members += [
        OwnMember(cluster.bootstrap, group, topic, protocol) for protocol, group in own_groups.items()
    ]
    writer = Writer("confluent-kafka", cluster.bootstrap, topic, PARTITIONS)
    try:
        writer.wait_for(20)
        for member in members:
            wait_until(lambda member=member: bool(member.values), f"{member.library} reads", 45)
        victim = coordinator_of(cluster, own_groups["consumer"])
        cluster.kill(victim)
        cluster.wait_until(
            lambda: coordinator_of(cluster, own_groups["consumer"]) not in (victim, -1),
            "the group has another coordinator",
        )
        writer.wait_for(50)
    finally:
        writer.stop()
    written = set(writer.acknowledged)
    for member in members:
        wait_until(
            lambda member=member: written <= set(member.values) or member.failure is not None,
            f"{member.library} has read all {len(written)} records",
            60,
        )
        assert member.failure is None, f"{member.library}: {member.failure!r}"
    cluster.restart(victim)
    check_committed(cluster, len(written))


def check_committed(cluster: Cluster, count: int) -> None:
    """All groups have committed this many records, before or after the failover."""
    with cluster.admin() as admin:
        groups = [group.group_id for group in admin.list_consumer_groups()]
        assert len(groups) == 6
        for group in groups:
            wait_until(
                lambda group=group: (
                    sum(each.offset for each in admin.list_consumer_group_offsets(group).values()) >= count
                ),
                f"{group} has committed all {count} records",
            )


class OwnTransactional:
    name = "barnabas"

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._library = barnabas.Producer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id, request_timeout_ms=5000
        )
        self._library.init_transactions()

    def begin(self) -> None:
        self._library.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self._library.send(topic, value=value, partition=partition).result(60)

    def commit(self) -> None:
        self._library.commit_transaction()

    def abort(self) -> None:
        self._library.abort_transaction()

    def close(self) -> None:
        self._library.close()


class Worker:
    """A thread that writes transactions of one record per partition; every third is aborted."""

    def __init__(self, library: str, producer: Transactional | OwnTransactional, topic: str) -> None:
        self.library = library
        self.committed: list[bytes] = []
        self.failure: BaseException | None = None
        self._topic = topic
        self._producer = producer
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._guarded, daemon=True)
        self._thread.start()

    def _guarded(self) -> None:
        try:
            number = 0
            while not self._stopping.is_set():
                self._write(number)
                number += 1
                time.sleep(0.02)
        except BaseException as failure:  # raised by stop(), in the test's thread
            self.failure = failure

    def _write(self, number: int) -> None:
        values = [f"{self.library} {number} {partition}".encode() for partition in range(PARTITIONS)]
        self._producer.begin()
        for partition, value in enumerate(values):
            self._producer.send(self._topic, value, partition)
        if number % 3 == 2:
            self._producer.abort()
            return
        self._producer.commit()
        self.committed += values

    def wait_for(self, count: int) -> None:
        target = len(self.committed) + count
        wait_until(
            lambda: len(self.committed) >= target or self.failure is not None,
            f"{self.library} commits {count} more records",
            90,
        )
        if self.failure is not None:
            raise AssertionError(f"{self.library}: {self.failure!r}") from self.failure

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(90)
        self._producer.close()
        if self.failure is not None:
            raise AssertionError(f"{self.library}: {self.failure!r}") from self.failure


def committed_values(cluster: Cluster, topic: str) -> list[bytes]:
    values = []
    with barnabas.Consumer(
        bootstrap_servers=cluster.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        places = [barnabas.TopicPartition(topic, number) for number in range(PARTITIONS)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        deadline = time.monotonic() + 60
        while any(consumer.position(place) < ends[place] for place in places):
            assert time.monotonic() < deadline, "the end of the topic is not reached"
            values += [record.value or b"" for record in consumer.poll(0.5)]
    return values


def transactional_ids(cluster: Cluster, topic: str) -> tuple[int, dict[str, str]]:
    """A broker, and a transactional id for each library. The broker is the coordinator of all ids but that of
    kafka-python 3.0.12, which forgets a request if it cannot connect to the coordinator."""
    with cluster.admin() as admin:
        admin.fence_producers([f"creates the internal topic {topic}"])
    leaders = [cluster.leader_of(("__transaction_state", number)) for number in range(6)]
    victim = leaders[0]

    def id_with(library: str, is_victim: bool) -> str:
        for number in itertools.count():
            name = f"{library} {number} {topic}"
            if (leaders[partition_for(name, len(leaders))] == victim) == is_victim:
                return name
        raise AssertionError

    return victim, {
        library: id_with(library, library != "kafka-python") for library in (*TRANSACTIONAL, "barnabas")
    }


def test_transactions_are_whole_when_a_broker_dies(cluster: Cluster, make_topic: MakeTopic) -> None:
    """The broker leads a partition that all transactions write to, and is the coordinator of most."""
    topic = make_topic(PARTITIONS)
    bootstrap = cluster.bootstrap
    victim, ids = transactional_ids(cluster, topic)
    kinds: dict[str, Callable[[str, str], Transactional | OwnTransactional]] = {
        **TRANSACTIONAL,
        "barnabas": OwnTransactional,
    }
    workers = [Worker(library, kinds[library](bootstrap, id_), topic) for library, id_ in ids.items()]
    failures: list[BaseException] = []
    try:
        for worker in workers:
            worker.wait_for(6)
        cluster.kill(victim)
        for worker in workers:
            worker.wait_for(10)
        cluster.restart(victim)
    finally:
        for worker in workers:
            try:
                worker.stop()
            except (AssertionError, Fenced, Refused) as failure:
                failures.append(failure)
    assert not failures, failures
    expected = {value for worker in workers for value in worker.committed}
    # A commit is answered before its markers are written.
    wait_until(lambda: expected <= set(committed_values(cluster, topic)), "all commits are visible", 30)
    values = committed_values(cluster, topic)
    assert set(values) == expected
    assert len(values) == len(expected), "a committed record is there twice"
