"""Replicas move, their number changes, brokers are added and removed, while records are written and brokers
are killed: each move ends or is cancelled, nothing is lost, and no copy is left where none belongs."""

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.jepsen.conftest import Run
from tests.jepsen.faults import (
    BrokerAdded,
    BrokerRemoved,
    Brokers,
    Controller,
    Degraded,
    FactorChanged,
    Killed,
    Leader,
    Reassigned,
    Role,
)
from tests.jepsen.faults.links import BROKERS
from tests.jepsen.faults.membership import Replicas, move, replicas_of, wait_for_moves, without
from tests.jepsen.stage import Settings, Stage

from barnabas.client.errors import KafkaError
from barnabas.testing.relay import Quality

pytestmark = pytest.mark.faults

# So slow that brokers are killed in the middle of a move.
NETWORK = Quality(delay_ms=40, jitter_ms=20, bytes_per_second=1_000_000)
# Removed copies disappear soon.
DELETE_DELAY = {"file.delete.delay.ms": "500"}
SETTINGS = Settings(topic_configs=DELETE_DELAY)


@pytest.fixture(scope="module")
def shape() -> dict[str, Any]:
    """One more broker than replicas."""
    return {"brokers": 4, "overrides": {"log.segment.delete.delay.ms": "500"}}


@contextlib.contextmanager
def moving(run: Run) -> Iterator[tuple[Stage, random.Random]]:
    """A run whose replicas move slowly, with as many copies at its end as there were before."""
    with run(settings=SETTINGS) as stage, Degraded(stage.system, NETWORK, others=[BROKERS]):
        chance = random.Random(stage.seed)
        stage.run(chance.uniform(1, 2))
        yield stage, chance
        wait_for_moves(stage.system)
        with contextlib.suppress(TimeoutError):
            stage.system.wait_until(lambda: not wrong_copies(stage), "each copy is where it belongs")
        assert wrong_copies(stage) == []


def wrong_copies(stage: Stage) -> list[str]:
    """Copies of partitions on brokers that are no replicas of them, and replicas without a copy."""
    wanted = replicas_of(stage.system)
    found = []
    for broker_id, broker in stage.system.brokers.items():
        names = {path.name for path in broker.data_dir.iterdir() if has_segments(path)}
        mine = {str(place) for place, replicas in wanted.items() if broker_id in replicas}
        found += [f"broker {broker_id} has {name}" for name in sorted(names - mine)]
        found += [f"broker {broker_id} has no copy of {name}" for name in sorted(mine - names)]
    return found


def has_segments(directory: Path) -> bool:
    # A directory may be removed while it is looked at.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return any(path.suffix == ".log" for path in directory.iterdir())
    return False


def victim(stage: Stage, chance: random.Random, others_than: int = 0) -> Role:
    """Whom to kill: one that leads, decides, or has or gets a replica."""
    roles: list[Role] = [Leader(stage.topic, chance.randrange(stage.events.partitions)), Controller()]
    if others_than:
        roles = []
    roles += [Brokers(broker_id) for broker_id in stage.system.brokers if broker_id != others_than]
    return chance.choice(roles)


def cancel(stage: Stage) -> None:
    """End all moves that have not ended yet, where they are."""
    with stage.system.admin() as admin:
        for place in admin.list_partition_reassignments():
            # It may have ended meanwhile.
            with contextlib.suppress(KafkaError):
                admin.alter_partition_reassignments({place: None})


def test_replicas_move_and_a_broker_is_killed(run: Run) -> None:
    """In every second round the moves are cancelled while the broker is away."""
    with moving(run) as (stage, chance):
        before = replicas_of(stage.system, [stage.topic])
        with stage.fault(Reassigned(stage.system, stage.topic)):
            with stage.fault(Killed(stage.system, victim(stage, chance))):
                stage.run(chance.uniform(0, 1))
                if stage.seed % 2:
                    cancel(stage)
                stage.wait_until_writable("writable after the kill")
            wait_for_moves(stage.system)
            after = replicas_of(stage.system, [stage.topic])
            assert all(is_moved(stage, before[place], after[place]) for place in before), after
        assert replicas_of(stage.system, [stage.topic]) == before


def is_moved(stage: Stage, before: list[int], after: list[int]) -> bool:
    """To the next broker each. If it was cancelled, perhaps not at all; as in Kafka, the order of the
    replicas is then not always what it was."""
    ids = sorted(stage.system.brokers)
    target = [ids[(ids.index(each) + 1) % len(ids)] for each in before]
    return after == target or (stage.seed % 2 == 1 and sorted(after) == sorted(before))


def test_the_number_of_replicas_changes_and_a_broker_is_killed(run: Run) -> None:
    with moving(run) as (stage, chance):
        factor = chance.choice((2, 4))
        with stage.fault(FactorChanged(stage.system, stage.topic, factor)):
            with stage.fault(Killed(stage.system, victim(stage, chance))):
                stage.run(chance.uniform(0, 2))
            wait_for_moves(stage.system)
            after = replicas_of(stage.system, [stage.topic])
            assert {len(replicas) for replicas in after.values()} == {factor}, after


def test_a_broker_is_added_and_another_is_killed(run: Run) -> None:
    with moving(run) as (stage, chance):
        added = BrokerAdded(stage.system, stage.topic)
        with stage.fault(added):
            with stage.fault(Killed(stage.system, victim(stage, chance))):
                stage.run(chance.uniform(0, 2))
            wait_for_moves(stage.system)
            after = replicas_of(stage.system, [stage.topic])
            assert all(replicas[-1] == added.broker_id for replicas in after.values()), after


def test_a_broker_is_removed_and_another_is_killed(run: Run) -> None:
    with moving(run) as (stage, chance):
        broker_id = chance.choice(sorted(stage.system.brokers))
        before = replicas_on(stage, broker_id)
        away = {place: without(stage.system, broker_id, replicas) for place, replicas in before.items()}
        move(stage.system, away)
        with stage.fault(Killed(stage.system, victim(stage, chance, others_than=broker_id))):
            stage.run(chance.uniform(0, 2))
        wait_for_moves(stage.system)
        assert replicas_on(stage, broker_id) == {}
        with stage.fault(BrokerRemoved(stage.system, Brokers(broker_id))):
            stage.run(1.0)
        # An empty broker with the same id gets everything back.
        move(stage.system, before)
        wait_for_moves(stage.system)
        assert replicas_on(stage, broker_id) == before


def replicas_on(stage: Stage, broker_id: int) -> Replicas:
    return {place: replicas for place, replicas in replicas_of(stage.system).items() if broker_id in replicas}
