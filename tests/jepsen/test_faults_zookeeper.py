"""Three ZooKeeper servers that are killed, paused, slow, and sessions that expire."""

import re
import time
from itertools import count
from typing import Any

import pytest
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import MakeTopic
from tests.jepsen.faults import (
    All,
    Brokers,
    Fault,
    Isolated,
    Paused,
    SessionsExpired,
    ZooKeeperDown,
    ZooKeeperPaused,
    ZooKeeperServerKilled,
    ZooKeeperSlow,
)
from tests.jepsen.faults.zookeeper import asked, is_leader, sessions_of
from tests.jepsen.probes import is_stopped, write

import barnabas
from barnabas.client.admin import NewTopic
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.testing.links import ZOOKEEPER


@pytest.fixture(scope="module")
def shape() -> dict[str, Any]:
    return {"brokers": 2, "zookeepers": 3}


def sessions(system: FaultyCluster) -> set[int]:
    return set().union(*map(sessions_of, system.zookeepers.servers.values()))


def create(system: FaultyCluster, name: str, seconds: float = 30) -> None:
    with system.admin() as admin:
        try:
            admin.create_topics([NewTopic(name, 1, 2)], timeout=seconds)
        except KafkaError as error:
            # The answer to the first attempt was lost, as on a busy machine.
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise


def expirations(system: FaultyCluster) -> dict[int, int]:
    """How often each broker has lost its session."""
    lost = re.compile("the session with ZooKeeper at .* has expired")
    return {id_: len(lost.findall(broker.output())) for id_, broker in system.brokers.items()}


def test_one_server_of_three_is_killed(system: FaultyCluster) -> None:
    (leader,) = [number for number, server in system.zookeepers.servers.items() if is_leader(server)]
    with ZooKeeperServerKilled(system) as fault:
        assert fault.killed == leader and not system.zookeepers.servers[leader].is_running
        assert repr(fault) == f"kill -9 of the leading ZooKeeper server ({leader})"
        create(system, "while-one-is-away")
    other = ZooKeeperServerKilled(system, 2)
    assert repr(other) == "kill -9 of ZooKeeper server 2"
    assert all(asked(server, "srvr") for server in system.zookeepers.servers.values())
    assert [is_leader(server) for server in system.zookeepers.servers.values()].count(True) == 1


@pytest.mark.parametrize("kind", [ZooKeeperDown, ZooKeeperPaused])
def test_records_are_written_while_all_servers_are_away_but_the_metadata_does_not_change(
    system: FaultyCluster, make_topic: MakeTopic, kind: type[Fault]
) -> None:
    topic = make_topic(replicas=2)
    with barnabas.Producer(bootstrap_servers=system.bootstrap) as producer:
        # It gets its id now: the controller writes it to ZooKeeper.
        producer.send(topic, value=b"before").result(30)
        with kind(system) as fault:
            servers = system.zookeepers.servers.values()
            assert all(not server.is_running or is_stopped(server.pid) for server in servers)
            assert "of all ZooKeeper servers" in repr(fault)
            producer.send(topic, value=b"during").result(30)
            with pytest.raises(KafkaError):
                create(system, f"{kind.__name__}-while-away", seconds=0.5)
    create(system, f"{kind.__name__}-after")


def test_slow_servers(system: FaultyCluster) -> None:
    with ZooKeeperSlow(system, 600) as fault:
        begin = time.monotonic()
        create(system, "slow")
        assert time.monotonic() - begin >= 0.6
        assert repr(fault) == "ZooKeeper slower by 600 ms"
    names = (f"quick-{number}" for number in count())

    def is_quick() -> bool:
        begin = time.monotonic()
        create(system, next(names))
        return time.monotonic() - begin < 0.6

    # Not always at once, as on a busy machine.
    system.wait_until(is_quick, "a topic is created without the delay")


def test_brokers_that_cannot_reach_some_servers_use_another(system: FaultyCluster) -> None:
    third = system.zookeepers.servers[3]
    with Isolated(system, All(), ["zookeeper-1", "zookeeper-2"]):
        system.wait_until(lambda: len(sessions_of(third)) == 2, "both brokers are connected to the third")
        create(system, "with-one-server")


def test_a_paused_broker_without_a_session_is_not_waited_for(
    system: FaultyCluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(replicas=2)
    with Paused(system, Brokers(2)):
        system.wait_until(lambda: len(sessions(system)) == 1, "the paused broker has lost its session")
        with SessionsExpired(system) as fault:
            assert len(fault.sessions) == 1
    system.wait_until(lambda: len(sessions(system)) == 2, "both have a session")
    system.wait_until_in_sync(topic)
    write(system, topic)


def test_the_sessions_of_connected_brokers_expire_while_another_is_cut_off(
    system: FaultyCluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(replicas=2)
    with Isolated(system, Brokers(2), [ZOOKEEPER]):
        system.wait_until(lambda: len(sessions(system)) == 1, "the broker that is cut off has no session")
        with SessionsExpired(system, of_connected=True) as fault:
            assert len(fault.sessions) == 1
    system.wait_until(lambda: len(sessions(system)) == 2, "both have a session")
    system.wait_until_in_sync(topic)
    write(system, topic)


def test_the_sessions_of_all_brokers_expire_at_once(system: FaultyCluster, make_topic: MakeTopic) -> None:
    topic = make_topic(replicas=2)
    before = expirations(system)
    with SessionsExpired(system) as fault:
        assert len(fault.sessions) == 2
    system.wait_until(
        lambda: all(count > before[id_] for id_, count in expirations(system).items()),
        "both brokers notice that their session has expired",
    )
    system.wait_until(
        lambda: len(sessions(system)) == 2 and not sessions(system) & fault.sessions,
        "both have a new session",
    )
    system.wait_until_in_sync(topic)
    write(system, topic)
    create(system, "after-the-expiry")
