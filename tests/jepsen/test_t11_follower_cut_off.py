"""A follower is cut off: from all brokers, from its leader only while others reach both (a bridge), or in one
direction only. It leaves the ISR in time, records are acknowledged without it, and it returns."""

import random
import time
from collections.abc import Callable

import pytest
from tests.jepsen.conftest import Run
from tests.jepsen.direct_writer import DirectWriter
from tests.jepsen.faults import Brokers, Cut, Fault, Isolated
from tests.jepsen.stage import System
from tests.jepsen.views import count_shrinks, in_sync, leaders

from barnabas.ids import TopicPartition

pytestmark = pytest.mark.faults

# replica.lag.time.max.ms of the cluster; leaders look every half of it. And some time for the controller,
# which a leader may reach only through another broker.
LAG_SECONDS = 2.0
SHRINK_SECONDS_MAX = 1.5 * LAG_SECONDS + 5.0

# The cuts between a leader and its follower.
CUTS: dict[str, Callable[[System, int, int], Fault]] = {
    "from all brokers": lambda system, leader, follower: Isolated(system, Brokers(follower)),
    "bridge": lambda system, leader, follower: Cut(system, leader, follower),
    "only its requests": lambda system, leader, follower: Cut(system, follower, leader, one_way=True),
    "only the answers to it": lambda system, leader, follower: Cut(system, leader, follower, one_way=True),
    "all that it sends": lambda system, leader, follower: Isolated(system, Brokers(follower), one_way=True),
}


@pytest.mark.parametrize("kind", CUTS)
def test_a_follower_is_cut_off(run: Run, kind: str) -> None:
    with run() as stage:
        chance = random.Random(stage.seed)
        stage.run(chance.uniform(1, 2))
        partition = TopicPartition(stage.topic, chance.randrange(stage.events.partitions))
        leader = leaders(stage)[partition]
        follower = chance.choice(sorted(in_sync(stage, partition) - {leader}))
        # Nobody reaches a controller that is cut off from all brokers, so first there must be another one.
        is_lost = follower == stage.system.controller() and not kind.startswith(("bridge", "only"))
        seconds_max = stage.recovery_seconds_max if is_lost else SHRINK_SECONDS_MAX
        # A follower of a partition to which nobody writes is never behind.
        writer = DirectWriter(stage, leader, partition)
        with writer, stage.fault(CUTS[kind](stage.system, leader, follower)):
            begin = time.monotonic()
            stage.system.wait_until(
                lambda: follower not in in_sync(stage, partition, leader), "the follower leaves the ISR"
            )
            stage.record_recovery("ISR without the follower", time.monotonic() - begin, seconds_max)
            alone = time.monotonic()
            stage.probes.write([partition], stage.recovery_seconds_max)
            stage.run(2.0)
            assert in_sync(stage, partition, leader) == set(stage.system.brokers) - {follower}
            assert writer.acked_since(alone), "no record was acknowledged without the follower"
        assert count_shrinks(stage.system.zookeepers.connect, [stage.topic])[partition] > 0
        begin = time.monotonic()
        stage.system.wait_until(
            lambda: follower in in_sync(stage, partition), "the follower is in sync again"
        )
        stage.record_recovery(
            "ISR with the follower again", time.monotonic() - begin, stage.recovery_seconds_max
        )
