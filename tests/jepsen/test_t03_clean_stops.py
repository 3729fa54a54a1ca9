"""Brokers are stopped cleanly (SIGTERM) and started again: they give up their leaderships first, so no client
gets an error, and no partition is away for a second."""

from collections.abc import Iterator
from random import Random

import pytest
from tests.jepsen.availability import longest_pauses, send_errors
from tests.jepsen.conftest import Run
from tests.jepsen.faults import Leader, Stopped
from tests.jepsen.history import History
from tests.jepsen.plans import Load
from tests.jepsen.stage import Stage

pytestmark = pytest.mark.faults

STOPS = 5
PAUSE_SECONDS_MAX = 1.0
# Clients that do not crash by themselves, so that every error is one of the cluster. Several write to each
# partition, so that a pause is one of the partition.
LOAD = Load(writers=4, pipelining_writers=4, readers=1, classic_groups=0, modern_groups=0, crash_share=0.0)


def test_leaders_are_stopped_cleanly(run: Run) -> None:
    with run(LOAD) as stage:
        stage.history_checks += [send_errors, lambda history: long_pauses(stage, history)]
        chance = Random(stage.seed)
        for _ in range(STOPS):
            leader = Leader(stage.topic, chance.randrange(stage.events.partitions))
            fault = Stopped(stage.system, leader)
            with stage.fault(fault):
                for partition in range(stage.events.partitions):
                    now = stage.system.leader_of((stage.topic, partition))
                    assert now not in (-1, *fault.broker_ids), f"partition {partition}: {now} leads"
                stage.run(chance.uniform(0.2, 1.0))
            stage.wait_until_in_sync()


def long_pauses(stage: Stage, history: History) -> Iterator[str]:
    pauses = longest_pauses(history, stage.topic)
    stage.report.figures["longest pause of a partition, ms"] = max(pauses.values()) * 1000
    assert len(pauses) == stage.events.partitions
    for key, seconds in pauses.items():
        if seconds >= PAUSE_SECONDS_MAX:
            yield f"{key} did not acknowledge anything for {seconds:.2f} s"
