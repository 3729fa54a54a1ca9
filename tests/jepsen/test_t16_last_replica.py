"""The last replica in sync loses what it has not synced, then the others return (KIP-966): nobody leads who
lacks acknowledged records, and nobody else loses any."""

from random import Random
from typing import Any

import pytest
from tests.jepsen.conftest import Run
from tests.jepsen.faults import Brokers, Fault, Followers, Paused, PowerLost, Stopped
from tests.jepsen.partitions import eligible_ids, in_sync_ids
from tests.jepsen.plans import Load
from tests.jepsen.stage import Stage

from barnabas.ids import TopicPartition

pytestmark = pytest.mark.faults

LOAD = Load(writers=2, pipelining_writers=2, transactional_writers=1, readers=1, modern_groups=0)
OFFLINE_SECONDS = 1.5


@pytest.fixture(scope="module")
def shape() -> dict[str, Any]:
    return {"tracks_syncs": True}


def left_alone(stage: Stage, kind: type[Paused] | type[Stopped]) -> tuple[TopicPartition, int, list[Fault]]:
    """A partition, its leader, and the faults that take its followers away, one after the other."""
    chance = Random(stage.seed)
    place = TopicPartition(stage.topic, chance.randrange(stage.events.partitions))
    leader = stage.system.leader_of(place)
    followers = Followers(*place).find(stage.system)
    chance.shuffle(followers)
    return place, leader, [kind(stage.system, Brokers(each)) for each in followers]


def wait_until_alone(stage: Stage, place: TopicPartition, leader: int) -> list[int]:
    """Returns the replicas that may lead although they are not in sync."""
    stage.system.wait_until(lambda: in_sync_ids(stage.system, place) == [leader], "one replica is in sync")
    stage.run(Random(stage.seed).uniform(0.2, 1.0))
    eligible = eligible_ids(stage.system, place)
    assert eligible and leader not in eligible
    return eligible


def lose_power(stage: Stage, leader: int) -> PowerLost:
    """The leader is gone, and with it records that others have acknowledged too."""
    power = PowerLost(stage.system, Brokers(leader))
    power.inject()
    logs = [path for path in power.losses[leader].bytes_lost if path.suffix == ".log"]
    lost = {path.parent for path in logs if path.parent.name.startswith(stage.topic)}
    assert lost, f"no records were lost: {power.losses[leader]}"
    stage.note(f"{power!r}: it loses records of {len(lost)} partitions")
    return power


@pytest.mark.parametrize("kind", [Stopped, Paused])
def test_the_last_replica_returns_first(run: Run, kind: type[Paused] | type[Stopped]) -> None:
    with run(LOAD) as stage:
        place, leader, faults = left_alone(stage, kind)
        with stage.fault(*faults):
            eligible = wait_until_alone(stage, place, leader)
            power = lose_power(stage, leader)
            power.heal()
            stage.note(f"broker {leader} is back")
            # It does not have all records any more, and those that have are away.
            stage.run(OFFLINE_SECONDS)
            assert stage.system.leader_of(place) == -1
            assert leader not in (*in_sync_ids(stage.system, place), *eligible_ids(stage.system, place))
        assert stage.system.leader_of(place) in eligible


def test_the_others_return_first(run: Run) -> None:
    with run(LOAD) as stage:
        place, leader, faults = left_alone(stage, Paused)
        with stage.fault(*faults):
            eligible = wait_until_alone(stage, place, leader)
            power = lose_power(stage, leader)
        assert stage.system.leader_of(place) in eligible
        power.heal()
        stage.note(f"broker {leader} is back")
