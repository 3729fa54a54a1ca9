"""Replicas that move, brokers that come and go, hostile clients, and random faults one after the other."""

import itertools
from collections import Counter

from tests.cluster.reading import check_order, check_written, values_of
from tests.cluster.writers import Writer
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import MakeTopic
from tests.jepsen.faults import (
    BrokerAdded,
    BrokerRemoved,
    Brokers,
    FactorChanged,
    HostileClients,
    RandomFaults,
    Reassigned,
    Scope,
    Window,
)
from tests.jepsen.faults.membership import replicas_of, wait_for_moves
from tests.jepsen.probes import client_of, is_answered, values_at, write

from barnabas.client.types import TopicPartition


def replicas(system: FaultyCluster, topic: str) -> list[int]:
    return replicas_of(system, [topic])[TopicPartition(topic, 0)]


def test_replicas_move_and_return(system: FaultyCluster, make_topic: MakeTopic) -> None:
    topic = make_topic(replicas=2)
    write(system, topic)
    before = replicas(system, topic)
    with Reassigned(system, topic) as fault:
        wait_for_moves(system)
        assert replicas(system, topic) == [each % 3 + 1 for each in before]
        assert repr(fault) == f"all replicas of {topic} move"
    assert replicas(system, topic) == before
    with FactorChanged(system, topic, 3):
        wait_for_moves(system)
        assert len(replicas(system, topic)) == 3
    with FactorChanged(system, topic, 1):
        wait_for_moves(system)
        assert replicas(system, topic) == before[:1]
    assert replicas(system, topic) == before
    assert values_at(system, topic) == [b"value"]


def test_a_broker_is_added_and_removed_again(system: FaultyCluster, make_topic: MakeTopic) -> None:
    topic = make_topic()
    write(system, topic)
    fault = BrokerAdded(system, topic)
    for _ in range(2):
        with fault:
            assert fault.broker_id == 4 and repr(fault) == "one more broker (4)"
            wait_for_moves(system)
            assert replicas(system, topic)[-1] == 4
            with client_of(system, 4) as client:
                assert is_answered(client)
        assert sorted(replicas(system, topic)) == [1, 2, 3]
        assert sorted(system.brokers) == [1, 2, 3]
    assert values_at(system, topic) == [b"value"]


def test_a_broker_is_removed_and_added_again(system: FaultyCluster, make_topic: MakeTopic) -> None:
    topic = make_topic()
    write(system, topic)
    before = replicas(system, topic)
    with BrokerRemoved(system, Brokers(2)) as fault:
        assert repr(fault) == "removal of broker 2"
        assert sorted(system.brokers) == [1, 3]
        assert replicas(system, topic) == [each for each in before if each != 2]
        write(system, topic)
    assert replicas(system, topic) == before
    system.wait_until_in_sync(topic)
    assert values_at(system, topic) == [b"value"] * 2


def test_hostile_clients_do_not_concern_others(system: FaultyCluster, make_topic: MakeTopic) -> None:
    topic = make_topic()
    pids = {id_: broker.pid for id_, broker in system.brokers.items()}
    fault = HostileClients(system, Brokers(1, 2), 1000)
    # They give way to others, so on a busy machine there are few of them at first.
    while fault.connections < 100:
        with fault:
            assert repr(fault) == "1000 hostile connections per second to broker 1, 2"
            for _ in range(30):
                write(system, topic)
    assert {id_: broker.pid for id_, broker in system.brokers.items() if broker.is_running} == pids
    for broker in system.brokers.values():
        assert "Traceback" not in broker.output()


# ---- random faults


def scope_of(topic: str) -> Scope:
    return Scope((1, 2, 3), topic, partitions=3, groups=("g",), transactional_ids=("t",), seconds=(0.2, 0.6))


def first_windows(system: FaultyCluster, seed: int, count: int = 400) -> list[Window]:
    return list(itertools.islice(RandomFaults(system, scope_of("topic"), seed).windows(), count))


def test_the_seed_alone_decides_which_faults_come(system: FaultyCluster) -> None:
    windows = first_windows(system, 1)
    assert list(map(str, windows)) == list(map(str, first_windows(system, 1)))
    assert list(map(str, windows)) != list(map(str, first_windows(system, 2)))
    quiet = sum(not window.faults for window in windows)
    assert 0.2 < quiet / len(windows) < 0.3
    kinds = Counter(type(fault).__name__ for window in windows for fault in window.faults)
    assert len(kinds) >= 15, kinds
    assert {len(window.faults) for window in windows} == {0, 1, 2, 3}
    assert all(0.2 <= window.seconds <= 0.6 for window in windows)
    assert str(next(window for window in windows if not window.faults)).startswith("no faults for 0.")


def test_a_cluster_survives_random_faults(system: FaultyCluster, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    seen: list[str] = []
    writer = Writer("barnabas", system.bootstrap, topic, 3)
    RandomFaults(system, scope_of(topic), seed=3).run(5, lambda window: seen.append(str(window)))
    writer.wait_for(10)
    writer.stop()
    assert len(seen) > 2, seen
    assert all(broker.is_answering for broker in system.brokers.values())
    system.wait_until_in_sync(topic)
    values = []
    for partition in range(3):
        read = values_of("barnabas", system.bootstrap, topic, partition)
        check_order(read)
        values += read
    check_written(values, writer.acknowledged)
