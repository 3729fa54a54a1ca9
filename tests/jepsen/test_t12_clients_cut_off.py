"""Clients are cut off from all brokers, or from one, in both directions or in one: every record that they
send is acknowledged after all, and is there once."""

import random
import time
from collections.abc import Iterable

import pytest
from tests.jepsen.conftest import Run
from tests.jepsen.faults import All, Brokers, Cut, Fault, Isolated
from tests.jepsen.faults.roles import Role
from tests.jepsen.plans import Load
from tests.jepsen.stage import System
from tests.jepsen.told import acknowledged, failures
from tests.jepsen.views import leaders

from barnabas.testing.links import CLIENT

pytestmark = pytest.mark.faults

# No client ends by itself, so everything that fails is the network's fault. A cut is longer than the time
# after which clients give up a request, which is 3 s, and shorter than that after which they give up a
# record.
LOAD = Load(crash_share=0)
CUT_SECONDS = (4.0, 7.0)
# Answers to requests that were under way when the cut began.
MOMENT_SECONDS = 0.3
WAYS = ("both ways", "requests", "answers")


def cuts(system: System, role: Role, way: str) -> Iterable[Fault]:
    if way == "requests":
        return [Cut(system, CLIENT, broker_id, one_way=True) for broker_id in role.find(system)]
    return [Isolated(system, role, [CLIENT], one_way=way == "answers")]


def test_clients_are_cut_off_from_all_brokers(run: Run) -> None:
    with run(LOAD) as stage:
        chance = random.Random(stage.seed)
        begin = time.monotonic()
        stage.run(chance.uniform(1, 2))
        with stage.fault(*cuts(stage.system, All(), WAYS[stage.seed % len(WAYS)])):
            time.sleep(MOMENT_SECONDS)
            cut_at = time.monotonic()
            stage.run(chance.uniform(*CUT_SECONDS))
            assert not acknowledged(stage, stage.partitions, cut_at), "the cut has no effect"
        stage.wait_for_progress()
        assert failures(stage, ["send"], begin) == []


def test_clients_are_cut_off_from_one_broker(run: Run) -> None:
    with run(LOAD) as stage:
        chance = random.Random(stage.seed)
        begin = time.monotonic()
        stage.run(chance.uniform(1, 2))
        broker_id = chance.choice(sorted(stage.system.brokers))
        led = leaders(stage)
        mine = [place for place, leader in led.items() if leader == broker_id]
        with stage.fault(*cuts(stage.system, Brokers(broker_id), WAYS[stage.seed // 3 % len(WAYS)])):
            time.sleep(MOMENT_SECONDS)
            cut_at = time.monotonic()
            stage.probes.write([place for place in led if place not in mine], stage.recovery_seconds_max)
            stage.run(max(0.0, cut_at + chance.uniform(*CUT_SECONDS) - time.monotonic()))
            assert not acknowledged(stage, mine, cut_at), "the cut has no effect"
        stage.wait_for_progress()
        assert failures(stage, ["send"], begin) == []
