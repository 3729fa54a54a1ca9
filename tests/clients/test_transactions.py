"""Transactions: readers of committed records see all records and offsets of a transaction, or none."""

import time
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest
from tests.clients import kafka_python_library as kafka_python
from tests.clients.broker_process import BrokerProcess
from tests.clients.client import wait_until
from tests.clients.confluent_client import ConfluentAdmin
from tests.clients.conftest import MakeTopic
from tests.clients.consumers import CONSUMERS
from tests.clients.reading import everything
from tests.clients.transactional import TRANSACTIONAL, Fenced, Refused, Transactional

Begin = Callable[..., Transactional]


@pytest.fixture
def begin(quick_bootstrap: str, topic_name: str) -> Iterator[Begin]:
    """begin(library) -> a producer with the test's transactional id, after init_transactions."""
    opened: list[Transactional] = []

    def make(library: str, timeout_ms: int = 60_000, name: str = "") -> Transactional:
        opened.append(TRANSACTIONAL[library](quick_bootstrap, f"tx-{topic_name}{name}", timeout_ms))
        return opened[-1]

    yield make
    for producer in opened:
        producer.close()


def committed(bootstrap: str, topic: str, partitions: int = 1, library: str = "") -> list[bytes]:
    return everything(bootstrap, topic, partitions, "read_committed", library)


def uncommitted(bootstrap: str, topic: str, partitions: int = 1) -> list[bytes]:
    return everything(bootstrap, topic, partitions, "read_uncommitted")


@pytest.mark.parametrize("library", TRANSACTIONAL)
def test_commit_and_abort(
    quick_bootstrap: str, make_quick_topic: MakeTopic, begin: Begin, library: str
) -> None:
    topic = make_quick_topic()
    producer = begin(library)
    for turn in range(6):
        producer.begin()
        producer.send(topic, b"a%d" % turn)
        producer.send(topic, b"b%d" % turn)
        producer.commit() if turn % 2 else producer.abort()
    assert committed(quick_bootstrap, topic) == [b"a1", b"b1", b"a3", b"b3", b"a5", b"b5"]
    assert uncommitted(quick_bootstrap, topic) == [
        b"%s%d" % (kind, turn) for turn in range(6) for kind in (b"a", b"b")
    ]


@pytest.mark.parametrize("reader", CONSUMERS)
def test_every_reader_leaves_out_what_was_aborted(
    quick_bootstrap: str, make_quick_topic: MakeTopic, begin: Begin, reader: str
) -> None:
    topic = make_quick_topic()
    producer, other = begin("confluent-kafka"), begin("confluent-kafka", name="-other")
    for turn in range(3):
        producer.begin()
        other.begin()
        producer.send(topic, b"kept %d" % turn)
        other.send(topic, b"aborted %d" % turn)
        producer.send(topic, b"kept too %d" % turn)
        other.abort()
        producer.commit()
    expected = [b"kept %d" % turn for turn in range(3)] + [b"kept too %d" % turn for turn in range(3)]
    assert sorted(committed(quick_bootstrap, topic, library=reader)) == sorted(expected)


@pytest.mark.parametrize("library", TRANSACTIONAL)
def test_an_open_transaction_holds_readers_back_on_every_partition(
    quick_bootstrap: str, make_quick_topic: MakeTopic, begin: Begin, library: str
) -> None:
    topic = make_quick_topic(3)
    producer = begin(library)
    producer.begin()
    for partition in range(3):
        producer.send(topic, b"open %d" % partition, partition)
    assert committed(quick_bootstrap, topic, 3) == []
    assert sorted(uncommitted(quick_bootstrap, topic, 3)) == [b"open 0", b"open 1", b"open 2"]
    producer.commit()
    wait_until(lambda: len(committed(quick_bootstrap, topic, 3)) == 3, "all are readable")


@pytest.mark.parametrize("library", TRANSACTIONAL)
def test_offsets_are_part_of_the_transaction(
    quick_bootstrap: str, make_quick_topic: MakeTopic, begin: Begin, library: str
) -> None:
    topic = make_quick_topic(2)
    group = f"group-of-{topic}"
    producer = begin(library)

    def offsets() -> dict[int, int]:
        admin = kafka_python.KafkaAdminClient(bootstrap_servers=quick_bootstrap)
        committed = admin.list_group_offsets({group: None})[group]
        admin.close()
        return {place.partition: value.offset for place, value in committed.items() if value.offset >= 0}

    producer.begin()
    producer.send(topic, b"x")
    producer.send_offsets(group, {(topic, 0): 11, (topic, 1): 22})
    assert offsets() == {}
    producer.abort()
    assert offsets() == {}
    producer.begin()
    producer.send(topic, b"y")
    producer.send_offsets(group, {(topic, 0): 33, (topic, 1): 44})
    producer.commit()
    wait_until(lambda: offsets() == {0: 33, 1: 44}, "both offsets are there")
    assert committed(quick_bootstrap, topic) == [b"y"]


@pytest.mark.parametrize("library", TRANSACTIONAL)
def test_a_second_producer_of_the_same_name_fences_the_first(
    quick_bootstrap: str, make_quick_topic: MakeTopic, begin: Begin, library: str
) -> None:
    topic = make_quick_topic()
    zombie = begin(library)
    zombie.begin()
    zombie.send(topic, b"of the zombie")
    successor = begin(library)
    successor.begin()
    successor.send(topic, b"of the successor")
    successor.commit()
    with pytest.raises((Fenced, Refused)):
        zombie.send(topic, b"late")
        zombie.commit()
    if library == "kafka-python":
        # It requests a new epoch by itself. Kafka refuses that, but first ends the transaction that the
        # successor may have open at that moment.
        zombie.close()
    successor.begin()
    successor.send(topic, b"of the successor again")
    successor.commit()
    assert committed(quick_bootstrap, topic) == [b"of the successor", b"of the successor again"]
    assert b"late" not in uncommitted(quick_bootstrap, topic)


@pytest.mark.parametrize("library", ["confluent-kafka", "kafka-python"])
def test_a_transaction_that_takes_too_long_is_aborted(
    quick_bootstrap: str, make_quick_topic: MakeTopic, begin: Begin, library: str
) -> None:
    """Its producer does nothing any more, and readers must not wait forever."""
    topic = make_quick_topic()
    producer = begin(library, timeout_ms=1500)
    producer.begin()
    producer.send(topic, b"too late")
    wait_until(lambda: _stable_end(quick_bootstrap, topic) == 2, "the abort marker is written", 30)
    assert committed(quick_bootstrap, topic) == []
    with pytest.raises((Fenced, Refused)):
        producer.send(topic, b"later still")
        producer.commit()
    assert committed(quick_bootstrap, topic) == []
    assert uncommitted(quick_bootstrap, topic) == [b"too late"]


def _stable_end(bootstrap: str, topic: str) -> int:
    library = kafka_python.KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    try:
        place = kafka_python.TopicPartition(topic, 0)
        return int(library.end_offsets([place])[place])
    finally:
        library.close()


def test_a_transaction_timeout_above_the_limit_is_refused(begin: Begin) -> None:
    with pytest.raises(Refused, match="50"):  # INVALID_TRANSACTION_TIMEOUT
        begin("confluent-kafka", timeout_ms=900_001)


def test_transactions_can_be_described_and_listed(
    quick_bootstrap: str, make_quick_topic: MakeTopic, begin: Begin
) -> None:
    topic = make_quick_topic(2)
    name = f"tx-{topic}"
    producer = begin("confluent-kafka", timeout_ms=45_000)
    admin = kafka_python.KafkaAdminClient(bootstrap_servers=quick_bootstrap)
    place = kafka_python.TopicPartition(topic, 1)

    def described() -> object:
        return admin.describe_transactions([name])[name]

    try:
        assert _state(described()) == "Empty"
        producer.begin()
        producer.send(topic, b"x", 1)
        description = described()
        assert _state(description) == "Ongoing"
        assert description.transaction_timeout_ms == 45_000  # type: ignore[attr-defined]
        assert set(description.topic_partitions) == {place}  # type: ignore[attr-defined]
        (all_listed,) = admin.list_transactions().values()
        listed = [each for each in all_listed if each.transactional_id == name]
        assert [_state(each) for each in listed] == ["Ongoing"]
        (state,) = admin.describe_producers([place]).values()
        (active,) = state.active_producers
        assert (active.producer_id, active.current_transaction_start_offset) == (description.producer_id, 0)  # type: ignore[attr-defined]
        producer.commit()
        wait_until(lambda: _state(described()) == "CompleteCommit", "the transaction is complete")
        assert set(described().topic_partitions) == set()  # type: ignore[attr-defined]
        (state,) = admin.describe_producers([place]).values()
        assert state.active_producers[0].current_transaction_start_offset == -1
    finally:
        admin.close()


def _state(of: object) -> str:
    state = of.state  # type: ignore[attr-defined]
    return str(getattr(state, "value", state))


@pytest.mark.parametrize("library", TRANSACTIONAL)
@pytest.mark.parametrize("with_signal", [15, 9])
def test_the_broker_restarts_in_the_middle(
    own_quick_broker: BrokerProcess, topic_name: str, library: str, with_signal: int
) -> None:
    bootstrap = own_quick_broker.bootstrap
    ConfluentAdmin(bootstrap).create_topic(topic_name, 2)
    producer = TRANSACTIONAL[library](bootstrap, "over the restart")
    producer.begin()
    producer.send(topic_name, b"before", 0)
    producer.send(topic_name, b"beside", 1)
    own_quick_broker.restart(with_signal)
    assert committed(bootstrap, topic_name, 2) == []
    producer.send(topic_name, b"after", 0)
    producer.commit()
    wait_until(lambda: len(committed(bootstrap, topic_name, 2)) == 3, "the whole transaction is readable")
    producer.begin()
    producer.send(topic_name, b"aborted after the restart")
    own_quick_broker.restart(with_signal)
    producer.abort()
    own_quick_broker.restart(with_signal)
    producer.begin()
    producer.send(topic_name, b"last")
    producer.commit()
    expected = [b"after", b"before", b"beside", b"last"]
    wait_until(
        lambda: sorted(committed(bootstrap, topic_name, 2)) == expected, "exactly these four are readable"
    )
    assert b"aborted after the restart" in uncommitted(bootstrap, topic_name, 2)
    producer.close()


def test_compaction_never_brings_back_what_was_aborted(
    own_quick_broker: BrokerProcess, topic_name: str
) -> None:
    """Many transactions on few keys, half of them aborted, with small segments and a quick cleaner."""
    bootstrap = own_quick_broker.bootstrap
    own_quick_broker.stop()
    own_quick_broker.overrides |= {"log.cleaner.backoff.ms": "100"}
    own_quick_broker.start()
    configs = {
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",
        "segment.ms": "300",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "100",
    }
    ConfluentAdmin(bootstrap).create_topic(topic_name, configs=configs)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": "compacted"})
    producer.init_transactions(30)
    latest: dict[bytes, bytes] = {}
    for turn in range(60):
        producer.begin_transaction()
        written = {b"key %d" % (turn % 7): b"value %d" % turn, b"key %d" % (turn % 3): b"also %d" % turn}
        for key, value in written.items():
            producer.produce(topic_name, value, key)
        if turn % 2:
            producer.commit_transaction(30)
            latest |= written
        else:
            producer.flush(30)
            producer.abort_transaction(30)
        time.sleep(0.02)

    def seen() -> list[bytes]:
        return committed(bootstrap, topic_name)

    assert set(latest.values()) <= set(seen())

    def is_compacted() -> bool:
        producer.begin_transaction()
        producer.produce(topic_name, b"x", b"roller")
        producer.commit_transaction(30)
        return len(uncommitted(bootstrap, topic_name)) <= 20

    wait_until(is_compacted, "the topic is compacted", 40)
    values = seen()
    assert not any(int(value.split()[-1]) % 2 == 0 for value in values if value != b"x")
    assert set(latest.values()) <= set(values)
    own_quick_broker.restart(9)
    assert [value for value in seen() if value != b"x"] == [value for value in values if value != b"x"]
