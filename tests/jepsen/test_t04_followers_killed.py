"""kill -9 of one follower: writing goes on. Of both: nothing is acknowledged that only the leader has,
clients with acks=all are told NOT_ENOUGH_REPLICAS, and writing goes on when the followers are back."""

import time
from random import Random

from tests.jepsen.availability import acknowledged_within
from tests.jepsen.conftest import Run
from tests.jepsen.direct_writer import DirectWriter
from tests.jepsen.faults import Brokers, Followers, Killed
from tests.jepsen.plans import Load
from tests.jepsen.results import PEER

from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition

LOAD = Load(writers=2, pipelining_writers=1, transactional_writers=1, readers=1, modern_groups=0)
# What a leader says when there are too few replicas: before it has noticed, and after that.
REFUSALS = {
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
}
ALONE_SECONDS = 2.0


def test_one_follower_is_killed_and_then_the_other(run: Run) -> None:
    with run(LOAD) as stage:
        place = TopicPartition(stage.topic, Random(stage.seed).randrange(stage.events.partitions))
        leader = stage.system.leader_of(place)
        first, second = Random(stage.seed).sample(Followers(*place).find(stage.system), 2)
        with DirectWriter(stage, leader, place) as writer:
            with stage.fault(Killed(stage.system, Brokers(first))):
                stage.wait_until_writable("writable after the kill of one")
                assert stage.system.leader_of(place) == leader
                assert writer.acks, "the leader acknowledges with two replicas"
                with stage.fault(Killed(stage.system, Brokers(second))):
                    alone_at = time.monotonic()
                    before = writer.errors.copy()
                    stage.run(ALONE_SECONDS)
                    if PEER == "barnabas":
                        stage.system.wait_until(
                            lambda: (writer.errors - before)[ErrorCode.NOT_ENOUGH_REPLICAS] > 0,
                            "the leader has noticed that it is alone",
                        )
                    returns_at = time.monotonic()
                    stage.history_checks.append(lambda it: acknowledged_within(it, alone_at, returns_at))
                    # The answer to a record from before may have come a moment later.
                    told = set(writer.errors - before) - {ErrorCode.NONE}
                    assert told and told <= REFUSALS, told
            assert [ack for ack in writer.acked_since(alone_at) if ack.came_at < returns_at] == []
            # The followers are back, and the leader was there all the time.
            resumed_at = time.monotonic()
            stage.system.wait_until(lambda: bool(writer.acked_since(resumed_at)), "the leader acknowledges")
            assert stage.system.leader_of(place) == leader
