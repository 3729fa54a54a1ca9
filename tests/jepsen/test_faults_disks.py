"""Disks of real brokers that are full, broken, read-only, slow or without power, and damaged files."""

import time
from typing import Any

import pytest
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import MakeTopic
from tests.jepsen.faults import (
    All,
    BrokenDisk,
    Damaged,
    Followers,
    FullDisk,
    Leader,
    PowerLost,
    ReadOnlyDisk,
    SlowDisk,
)
from tests.jepsen.faults.damage import FlippedBit, TornTail
from tests.jepsen.probes import values_at, write
from tests.support.raw_calls import PRODUCE, Topic, batch_of, produce_request
from tests.support.raw_client import RawClient

from barnabas.errors import ErrorCode


@pytest.fixture(scope="module")
def shape() -> dict[str, Any]:
    return {"tracks_syncs": True}


def produced(system: FaultyCluster, topic: str) -> int:
    """The error code of one attempt at the leader."""
    leader = system.brokers[system.leader_of((topic, 0))]
    request = produce_request(Topic(topic, bytes(16)), batch_of(b"value"), acks=-1)
    with RawClient("127.0.0.1", leader.port) as client:
        answer = client.call(PRODUCE, 9, request)
    return int(answer.responses[0].partition_responses[0].error_code)


def files_of(system: FaultyCluster, broker_id: int, topic: str) -> bytes:
    directory = system.brokers[broker_id].data_dir / f"{topic}-0"
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def wait_until_equal(system: FaultyCluster, topic: str) -> None:
    def are_equal() -> bool:
        return len({files_of(system, broker_id, topic) for broker_id in system.brokers}) == 1

    system.wait_until(are_equal, f"all replicas of {topic} have the same bytes")


def test_a_full_disk_refuses_records_and_takes_them_when_it_has_space_again(
    system: FaultyCluster, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    (leader,) = Leader(topic).find(system)
    pid = system.brokers[leader].pid
    with FullDisk(system, Leader(topic), room_bytes=30) as fault:
        assert repr(fault) == f"full disk of the leader of {topic}-0 (broker {leader})"
        assert produced(system, topic) == ErrorCode.KAFKA_STORAGE_ERROR
        assert fault.hits > 0
    system.wait_until(lambda: produced(system, topic) == 0, "records are taken again")
    assert system.brokers[leader].pid == pid


@pytest.mark.parametrize("kind", [BrokenDisk, ReadOnlyDisk])
def test_replicas_on_a_disk_that_fails_are_led_by_others(
    system: FaultyCluster, make_topic: MakeTopic, kind: type[BrokenDisk | ReadOnlyDisk]
) -> None:
    topic = make_topic()
    write(system, topic, b"before")
    (leader,) = Leader(topic).find(system)
    with kind(system, Leader(topic)) as fault:
        system.wait_until(lambda: produced(system, topic) == 0, "another broker takes records")
        assert fault.hits > 0
        assert system.leader_of((topic, 0)) != leader
    # As in Kafka, a broker uses a disk that has failed again only after a restart.
    system.restart(leader)
    system.wait_until_in_sync(topic)
    wait_until_equal(system, topic)


def test_a_slow_disk(system: FaultyCluster, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"flush.messages": "1"})
    write(system, topic)
    with SlowDisk(system, Leader(topic), 0.5) as fault:
        begin = time.monotonic()
        write(system, topic)
        assert time.monotonic() - begin >= 0.5
        assert fault.hits > 0
        assert repr(fault).endswith("0.5 s for a sync")


def test_a_broker_that_loses_power_loses_what_was_not_synced_and_gets_it_from_others(
    system: FaultyCluster, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    values = [b"%d" % number for number in range(20)]
    for value in values:
        write(system, topic, value)
    with PowerLost(system, Leader(topic)) as fault:
        (leader,) = fault.broker_ids
        lost = {path.parent.name for path in fault.losses[leader].bytes_lost if path.suffix == ".log"}
        assert f"{topic}-0" in lost
        assert files_of(system, leader, topic) == b""
    system.wait_until_in_sync(topic)
    wait_until_equal(system, topic)
    assert values_at(system, topic) == values


def test_synced_records_survive_a_loss_of_power_of_all_brokers(
    system: FaultyCluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(configs={"flush.messages": "1"})
    values = [b"%d" % number for number in range(5)]
    for value in values:
        write(system, topic, value)
    with PowerLost(system, All()) as fault:
        assert repr(fault) == "power failure of all brokers (broker 1, 2, 3)"
        assert not any(broker.is_running for broker in system.brokers.values())
    system.wait_until_in_sync(topic)
    assert values_at(system, topic) == values


@pytest.mark.parametrize("damage", [TornTail(20), FlippedBit()], ids=lambda each: type(each).__name__)
def test_damage_to_a_follower_is_repaired(system: FaultyCluster, make_topic: MakeTopic, damage: Any) -> None:
    topic = make_topic()
    for number in range(5):
        write(system, topic, b"%d" % number)
    wait_until_equal(system, topic)
    with Damaged(system, Followers(topic, count=1), (topic, 0), damage) as fault:
        (follower,) = fault.broker_ids
        assert files_of(system, follower, topic) != files_of(system, system.leader_of((topic, 0)), topic)
        assert type(damage).__name__ in repr(fault)
    system.wait_until_in_sync(topic)
    wait_until_equal(system, topic)
