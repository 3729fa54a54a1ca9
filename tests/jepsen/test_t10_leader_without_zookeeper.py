"""A leader is cut off from ZooKeeper only. Its session expires and another broker leads: from the first
record on that the new leader acknowledges, the old one acknowledges nothing."""

import random
import time

import pytest
from tests.jepsen.conftest import Run
from tests.jepsen.direct_writer import DirectWriter
from tests.jepsen.faults import Brokers, Isolated
from tests.jepsen.stage import Stage
from tests.jepsen.views import partition_led

from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("by_controller", [True, False], ids=["the controller", "not the controller"])
def test_a_leader_is_cut_off_from_zookeeper(run: Run, by_controller: bool) -> None:
    with run() as stage:
        stage.run(random.Random(stage.seed).uniform(1, 2))
        partition, leader = partition_led(stage, by_controller)
        with DirectWriter(stage, leader, partition) as old:
            with stage.fault(Isolated(stage.system, Brokers(leader), ["zookeeper"])):
                successor = wait_for_successor(stage, partition, leader)
                with DirectWriter(stage, successor, partition) as new:
                    stage.system.wait_until(lambda: bool(new.acks), "the new leader acknowledges a record")
                    stage.wait_until_writable("writable with another leader")
                    stage.run(2.0)
                assert old.acks, "the old leader has never acknowledged anything"
                late = old.acked_since(new.acks[0].came_at)
                assert not late, f"two leaders have acknowledged records: {late}"
            # It learns that it leads no longer.
            before = old.errors[ErrorCode.NOT_LEADER_OR_FOLLOWER]
            stage.system.wait_until(
                lambda: old.errors[ErrorCode.NOT_LEADER_OR_FOLLOWER] > before, "the old leader steps down"
            )
            assert not old.acked_since(new.acks[0].came_at)


def wait_for_successor(stage: Stage, partition: TopicPartition, leader: int) -> int:
    begin = time.monotonic()
    other = next(broker_id for broker_id in stage.system.brokers if broker_id != leader)
    found = leader

    def is_replaced() -> bool:
        nonlocal found
        with stage.system.admin(other) as admin:
            node = admin.describe_topics([partition.topic])[partition.topic].partitions[partition.partition]
        found = leader if node.leader is None else node.leader.id
        return found != leader

    stage.system.wait_until(is_replaced, "another broker leads")
    stage.record_recovery("another leader", time.monotonic() - begin, stage.recovery_seconds_max)
    return found
