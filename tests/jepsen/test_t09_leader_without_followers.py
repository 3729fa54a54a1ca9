"""A leader is cut off from its followers, not from ZooKeeper and not from clients: it acknowledges nothing
that only it has, the other partitions go on, and after the cut nothing is lost."""

import random
import time

import pytest
from tests.jepsen.conftest import Run
from tests.jepsen.direct_writer import DirectWriter
from tests.jepsen.faults import Brokers, Isolated
from tests.jepsen.stage import Stage
from tests.jepsen.told import acknowledged
from tests.jepsen.views import in_sync, leaders, partition_led

from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition

pytestmark = pytest.mark.faults

# replica.lag.time.max.ms of the cluster; leaders look every half of it. And some time for the controller.
LAG_SECONDS = 2.0
SHRINK_SECONDS_MAX = 1.5 * LAG_SECONDS + 2.0
REFUSALS = {
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
}


@pytest.mark.parametrize("by_controller", [True, False], ids=["the controller", "not the controller"])
def test_a_leader_is_cut_off_from_its_followers(run: Run, by_controller: bool) -> None:
    with run() as stage:
        stage.run(random.Random(stage.seed).uniform(1, 2))
        partition, leader = partition_led(stage, by_controller)
        is_controller = leader == stage.system.controller()
        mine = [place for place, who in leaders(stage).items() if who == leader]
        others = [place for place in stage.partitions if place not in mine]
        with DirectWriter(stage, leader, partition) as writer:
            with stage.fault(Isolated(stage.system, Brokers(leader))):
                begin = time.monotonic()
                writer.errors.clear()
                if is_controller:
                    # Its proposal needs no network between brokers.
                    wait_until_alone(stage, partition, leader)
                stage.probes.write(others, stage.recovery_seconds_max)
                stage.record_recovery(
                    "other partitions writable", time.monotonic() - begin, stage.recovery_seconds_max
                )
                stage.run(max(0.0, begin + SHRINK_SECONDS_MAX - time.monotonic()))
                end = time.monotonic()
                seen = {code for code in writer.errors if code is not ErrorCode.NONE}
            stage.wait_for_progress()
        assert seen and seen <= REFUSALS, writer.errors
        assert not is_controller or ErrorCode.NOT_ENOUGH_REPLICAS in seen, writer.errors
        false = acknowledged(stage, mine, begin, end)
        assert not false, f"acknowledged without followers: {false}"
        assert acknowledged(stage, mine, end), "nothing was acknowledged after the cut"


def wait_until_alone(stage: Stage, partition: TopicPartition, leader: int) -> None:
    """The followers leave the ISR, soon enough."""
    begin = time.monotonic()
    stage.system.wait_until(
        lambda: in_sync(stage, partition, leader) == {leader}, f"only {leader} is in the ISR"
    )
    stage.record_recovery("ISR without followers", time.monotonic() - begin, SHRINK_SECONDS_MAX)
