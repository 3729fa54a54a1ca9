"""Packets are late by 100 ms, more or less by 50, 5 % are lost, some arrive twice, and the network carries
3 Mbit/s: slow, but nothing is lost, and replicas do not leave and join the ISR again and again."""

import math
import random
import time
from dataclasses import replace
from typing import Any

import pytest
from tests.jepsen.conftest import Run
from tests.jepsen.faults import BadPackets, Degraded, Fault
from tests.jepsen.packets import PacketQuality, why_no_packets
from tests.jepsen.plans import Load
from tests.jepsen.stage import System
from tests.jepsen.views import count_shrinks

from barnabas.testing.relay import Quality

pytestmark = pytest.mark.faults

HAS_PACKETS = why_no_packets() is None
BAD = PacketQuality(delay_ms=100, jitter_ms=50, loss=0.05, duplicates=0.02, bytes_per_second=375_000)
# In odd rounds one of these is as in a good network.
PARTS: tuple[dict[str, Any], ...] = (
    {"delay_ms": 0, "jitter_ms": 0},
    {"loss": 0},
    {"duplicates": 0},
    {"bytes_per_second": None},
)
# What fits into such a network.
LOAD = Load(rate=3, settings={"reader": {"rate": 1}, "group_member": {"rate": 1}})
SECONDS = 20.0
SHRINKS_PER_MINUTE_MAX = 1


@pytest.fixture(scope="module")
def shape() -> dict[str, Any]:
    """The other tests have shorter times, which are for networks without losses. These are still a third of
    the defaults."""
    times = {"zookeeper.session.timeout.ms": "9000", "replica.lag.time.max.ms": "10000"}
    return {"packets": HAS_PACKETS, "overrides": times}


def bad_network(system: System, quality: PacketQuality) -> Fault:
    if HAS_PACKETS:
        return BadPackets(system, quality)
    limit = quality.bytes_per_second or math.inf
    return Degraded(system, Quality(quality.delay_ms, quality.jitter_ms, quality.loss, 0.0, limit))


def test_a_bad_network(run: Run) -> None:
    with run(LOAD) as stage:
        chance = random.Random(stage.seed)
        quality = replace(BAD, **chance.choice(PARTS)) if stage.seed % 2 else BAD
        topics = (stage.events.name, stage.copies.name)
        stage.run(chance.uniform(0, 1))
        begin = time.monotonic()
        with stage.fault(bad_network(stage.system, quality)):
            stage.run(SECONDS)
            stage.wait_for_progress(1)
            minutes = math.ceil((time.monotonic() - begin) / 60)
            shrinks = count_shrinks(stage.system.zookeepers.connect, topics)
        stage.report.figures["ISR shrinks"] = shrinks.total()
        assert shrinks.total() == 0 or max(shrinks.values()) <= SHRINKS_PER_MINUTE_MAX * minutes, shrinks
