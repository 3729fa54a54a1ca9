"""The leader of a partition is killed (kill -9) and started again, five times: each time nothing is lost,
nothing is there twice, another broker leads soon, and all replicas are in sync again."""

import itertools
import time
from random import Random

import pytest
from tests.jepsen.conftest import Run
from tests.jepsen.faults import Killed, Leader
from tests.jepsen.stage import Stage

pytestmark = pytest.mark.faults

KILLS = 5


def test_each_new_leader_is_killed(run: Run) -> None:
    with run() as stage:
        chance = Random(stage.seed)
        leader = Leader(stage.topic, chance.randrange(stage.events.partitions))
        killed: list[int] = []
        for number in range(1, KILLS + 1):
            stage.run(chance.uniform(0.1, 1.0))
            fault = Killed(stage.system, leader)
            with stage.fault(fault):
                stage.wait_until_writable(f"writable after kill {number}")
            killed += fault.broker_ids
            wait_for_replicas(stage, f"in sync after kill {number}")
        assert all(one != other for one, other in itertools.pairwise(killed)), killed


def wait_for_replicas(stage: Stage, what: str) -> None:
    """The time counts from when the broker is back and the cluster writable."""
    began = time.monotonic()
    stage.wait_until_in_sync()
    stage.record_recovery(what, time.monotonic() - began, stage.recovery_seconds_max)
