"""What the clients of each library say after a failure: never that something did not happen that may have
happened, and never that it happened if nobody confirmed it."""

import uuid
from collections.abc import Iterator

import pytest
from tests.jepsen.clients import base, library, prepare
from tests.jepsen.clients.base import (
    FAIL,
    OK,
    UNKNOWN,
    Group,
    Library,
    MicroOperation,
    OperationError,
    Reader,
)
from tests.jepsen.systems import OVERRIDES

from barnabas.client.admin import NewTopic
from barnabas.ids import TopicPartition
from barnabas.testing import Cluster

LIBRARIES = ["ours", "confluent", pytest.param("java", marks=pytest.mark.java)]
POLLS_MAX = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(1, OVERRIDES) as cluster:
        yield cluster


@pytest.fixture(params=LIBRARIES)
def clients(request: pytest.FixtureRequest) -> Library:
    prepare(request.param)
    return library(request.param)


@pytest.fixture
def partition(cluster: Cluster) -> TopicPartition:
    """The first partition of a new topic."""
    name = f"events-{uuid.uuid4().hex[:8]}"
    with cluster.admin() as admin:
        admin.create_topics([NewTopic(name, 1)])
    return TopicPartition(name, 0)


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "REQUEST_TIMEOUT_MS", 500)
    monkeypatch.setattr(base, "DELIVERY_TIMEOUT_MS", 1500)
    monkeypatch.setattr(base, "TRANSACTION_TIMEOUT_MS", 1500)
    monkeypatch.setattr(base, "BLOCK_MS", 1500)


@pytest.fixture
def paused(cluster: Cluster) -> Iterator[Cluster]:
    """The test pauses the broker; it goes on afterwards."""
    yield cluster
    cluster.resume(1)


def read(reader: Reader, count: int) -> list[tuple[int, int]]:
    """Offsets and values."""
    found: list[tuple[int, int]] = []
    for _ in range(POLLS_MAX):
        for name, result in reader.poll(0.5):
            if name == "poll":
                found += [(offset, value) for pairs in result.values() for offset, value in pairs]
        if len(found) >= count:
            break
    return found


def read_all(clients: Library, cluster: Cluster, partition: TopicPartition, count: int) -> list[int]:
    reader = clients.reader(cluster.bootstrap, "reader")
    try:
        reader.assign([partition])
        return [value for _, value in read(reader, count)]
    finally:
        reader.close()


# ---- sends


def test_records_are_written_and_read(clients: Library, cluster: Cluster, partition: TopicPartition) -> None:
    writer = clients.writer(cluster.bootstrap, "writer", in_flight=True)
    sent = writer.send([(partition, value) for value in range(8)])
    writer.close()
    assert [(each.outcome, each.offset) for each in sent] == [(OK, offset) for offset in range(8)]
    assert read_all(clients, cluster, partition, 8) == list(range(8))


@pytest.mark.usefixtures("short_patience")
def test_a_send_without_an_answer_is_unknown(
    clients: Library, paused: Cluster, partition: TopicPartition
) -> None:
    writer = clients.writer(paused.bootstrap, "writer")
    assert writer.send([(partition, 1)])[0].outcome == OK
    paused.pause(1)
    (sent,) = writer.send([(partition, 2)])
    writer.abandon()
    assert sent.outcome == UNKNOWN
    assert sent.offset is None
    assert sent.error


@pytest.mark.usefixtures("short_patience")
def test_a_send_to_a_topic_that_does_not_exist_is_not_confirmed(clients: Library, cluster: Cluster) -> None:
    writer = clients.writer(cluster.bootstrap, "writer")
    (sent,) = writer.send([(TopicPartition("missing", 0), 1)])
    writer.abandon()
    assert sent.outcome in (FAIL, UNKNOWN)


# ---- transactions


def test_a_transaction_that_is_committed_is_read_and_an_aborted_one_is_not(
    clients: Library, cluster: Cluster, partition: TopicPartition
) -> None:
    writer = clients.transactional_writer(cluster.bootstrap, "writer", str(partition))
    for value, end in (1, writer.commit), (2, writer.abort), (3, writer.commit):
        writer.begin()
        assert writer.send([(partition, value)])[0].outcome == OK
        end()
    writer.close()
    assert read_all(clients, cluster, partition, 2) == [1, 3]


@pytest.mark.usefixtures("short_patience")
def test_a_commit_without_an_answer_is_unknown(
    clients: Library, paused: Cluster, partition: TopicPartition
) -> None:
    writer = clients.transactional_writer(paused.bootstrap, "writer", str(partition))
    writer.begin()
    assert writer.send([(partition, 1)])[0].outcome == OK
    paused.pause(1)
    with pytest.raises(OperationError) as failed:
        writer.commit()
    writer.abandon()
    assert failed.value.outcome == UNKNOWN
    assert failed.value.is_broken


def test_a_writer_that_was_replaced_cannot_commit(
    clients: Library, cluster: Cluster, partition: TopicPartition
) -> None:
    former = clients.transactional_writer(cluster.bootstrap, "former", str(partition))
    former.begin()
    assert former.send([(partition, 1)])[0].outcome == OK
    newer = clients.transactional_writer(cluster.bootstrap, "newer", str(partition))
    with pytest.raises(OperationError) as failed:
        former.commit()
    former.abandon()
    assert failed.value.outcome == UNKNOWN
    assert failed.value.is_broken
    newer.begin()
    assert newer.send([(partition, 2)])[0].outcome == OK
    newer.commit()
    newer.close()
    assert read_all(clients, cluster, partition, 1) == [2]


def test_offsets_are_part_of_a_transaction(
    clients: Library, cluster: Cluster, partition: TopicPartition
) -> None:
    group = Group(f"group-{partition}")
    plain = clients.writer(cluster.bootstrap, "plain")
    plain.send([(partition, 1), (partition, 2)])
    plain.close()
    reader = clients.reader(cluster.bootstrap, "reader", group)
    reader.subscribe([partition.topic])
    assert read(reader, 2) == [(0, 1), (1, 2)]
    writer = clients.transactional_writer(cluster.bootstrap, "writer", str(partition))
    for offset, end in (1, writer.commit), (2, writer.abort):
        writer.begin()
        writer.send_offsets(reader, {partition: offset})
        end()
    assert reader.committed([partition]) == {partition: 1}
    reader.seek({partition: 1})
    assert read(reader, 1) == [(1, 2)]
    writer.close()
    reader.close()


# ---- groups


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_rebalances_are_reported_from_the_first_assignment_on(
    clients: Library, cluster: Cluster, partition: TopicPartition, protocol: str
) -> None:
    writer = clients.writer(cluster.bootstrap, "writer")
    writer.send([(partition, 1)])
    writer.close()
    group = Group(f"group-{partition}-{protocol}", protocol)
    reader = clients.reader(cluster.bootstrap, "reader", group)
    reader.subscribe([partition.topic])
    seen: list[MicroOperation] = []
    for _ in range(POLLS_MAX):
        seen += [each for each in reader.poll(0.2) if each != ["poll", {}]]
        if len(seen) >= 2:
            break
    assert seen == [["rebalance", [str(partition)]], ["poll", {str(partition): [[0, 1]]}]]
    assert reader.assignment() == [partition]
    assert reader.committed([partition]) == {partition: None}
    reader.commit({partition: 1})
    assert reader.committed([partition]) == {partition: 1}
    reader.close()


@pytest.mark.usefixtures("short_patience")
def test_a_commit_of_offsets_without_an_answer_is_unknown(
    clients: Library, paused: Cluster, partition: TopicPartition
) -> None:
    reader = clients.reader(paused.bootstrap, "reader", Group(f"group-{partition}"))
    reader.subscribe([partition.topic])
    for _ in range(POLLS_MAX):
        if any(name == "rebalance" for name, _ in reader.poll(0.2)):
            break
    paused.pause(1)
    with pytest.raises(OperationError) as failed:
        reader.commit({partition: 1})
    assert failed.value.outcome == UNKNOWN
    reader.abandon()
