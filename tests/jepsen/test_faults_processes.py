"""Processes that are killed, stopped and paused, chosen by what they do; and wrong clocks."""

import time
from pathlib import Path

import pytest
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import MakeTopic
from tests.jepsen.faults import (
    All,
    Brokers,
    ClockSkewed,
    ClockStrobing,
    Controller,
    Followers,
    GroupCoordinator,
    Killed,
    Leader,
    Paused,
    Restarted,
    Stopped,
    TransactionCoordinator,
)
from tests.jepsen.faults.zookeeper import sessions_of
from tests.jepsen.probes import is_stopped, values_at, write
from tests.support.raw_client import RawClient
from tests.support.raw_groups import RawGroup
from tests.support.raw_transactions import NEW, RawTransactional

import barnabas
from barnabas.client.types import TopicPartition

HOUR_MS = 3_600_000
# Longer than the session timeouts of brokers and of group members here.
LONG_SECONDS = 3.5


def test_a_killed_broker_starts_again_with_its_data(system: FaultyCluster, make_topic: MakeTopic) -> None:
    topic = make_topic()
    write(system, topic, b"kept")
    fault = Killed(system, Leader(topic))
    assert repr(fault) == f"kill -9 of the leader of {topic}-0"
    fault.heal()
    leader, pid = system.leader_of((topic, 0)), system.brokers[system.leader_of((topic, 0))].pid
    fault.inject()
    assert fault.broker_ids == [leader]
    assert repr(fault) == f"kill -9 of the leader of {topic}-0 (broker {leader})"
    assert not Path(f"/proc/{pid}").exists()
    with pytest.raises(RuntimeError, match="is present already"):
        fault.inject()
    fault.heal()
    assert system.brokers[leader].is_running
    system.wait_until_in_sync(topic)
    assert values_at(system, topic, leader) == [b"kept"]


def test_a_role_is_found_at_the_moment_of_injection(system: FaultyCluster, make_topic: MakeTopic) -> None:
    topic = make_topic()
    paused = Paused(system, Leader(topic))
    with Stopped(system, Leader(topic)) as stopped:
        assert "clean stop" in repr(stopped)
        with paused:
            (leader,) = paused.broker_ids
            assert leader not in stopped.broker_ids
            assert is_stopped(system.brokers[leader].pid)
        assert not is_stopped(system.brokers[leader].pid)
    assert all(broker.is_answering for broker in system.brokers.values())


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart(system: FaultyCluster, clean: bool) -> None:
    pid = system.brokers[2].pid
    with Restarted(system, Brokers(2), clean=clean) as fault:
        assert system.brokers[2].is_running and system.brokers[2].pid != pid
        assert repr(fault) == f"{'clean' if clean else 'unclean'} restart of broker 2"


def test_roles_of_brokers(system: FaultyCluster, make_topic: MakeTopic) -> None:
    topic = make_topic()
    (leader,) = Leader(topic).find(system)
    followers = Followers(topic).find(system)
    assert {leader, *followers} == {1, 2, 3} and leader not in followers
    assert Followers(topic, count=1).find(system) == followers[:1]
    assert Controller().find(system) == [system.controller()]
    (coordinator,) = GroupCoordinator("readers").find(system)
    with RawClient("127.0.0.1", system.brokers[coordinator].port) as client:
        RawGroup(client, "readers").find()
    (coordinator,) = TransactionCoordinator("writer").find(system)
    with RawClient("127.0.0.1", system.brokers[coordinator].port) as client:
        RawTransactional(client, "writer", NEW).init()


def test_a_role_that_nobody_has(system: FaultyCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.testing.cluster.WAIT_SECONDS_MAX", 0.2)
    fault = Killed(system, GroupCoordinator("readers"))
    with Paused(system, All()), pytest.raises(TimeoutError, match="is the coordinator of group readers"):
        fault.inject()
    assert not fault.injected


# ---- clocks


def test_a_wrong_clock_shifts_timestamps_but_ends_no_session(
    system: FaultyCluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(configs={"message.timestamp.type": "LogAppendTime"})
    sessions = sessions_of(system.zookeeper)
    with barnabas.Consumer(
        bootstrap_servers=system.bootstrap, group_id=topic, session_timeout_ms=1000, heartbeat_interval_ms=200
    ) as member:
        member.subscribe([topic])
        member.poll(1.0)
        with ClockSkewed(system, All(), 3600) as fault:
            assert repr(fault) == "clock wrong by +3600 s at all brokers (broker 1, 2, 3)"
            assert abs(write(system, topic).timestamp - now_ms() - HOUR_MS) < HOUR_MS / 2
        assert abs(write(system, topic).timestamp - now_ms()) < HOUR_MS / 2
        generation = member.group_metadata().generation_id
        with ClockStrobing(system, All(), -3600, period_seconds=0.1) as fault:
            assert repr(fault).startswith("clock jumps by -3600 s every 0.1 s at all brokers")
            end, offsets = time.monotonic() + LONG_SECONDS, set()
            while time.monotonic() < end:
                offsets.add(write(system, topic).timestamp < now_ms() - HOUR_MS / 2)
                member.poll(0.05)
            assert offsets == {True, False}
        assert member.group_metadata().generation_id == generation
        assert member.assignment() == {TopicPartition(topic, 0)}
    assert sessions_of(system.zookeeper) == sessions


def now_ms() -> float:
    return time.time() * 1000
