"""The clocks of brokers are wrong by a minute, jump, or jump all the time: no session, no group member, no
transaction and no record ends too early because of it. Only timestamps of records are wrong, and the indexes
by time stay sorted."""

import random
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from tests.jepsen.conftest import Run
from tests.jepsen.end_state import read_segments
from tests.jepsen.faults import All, Brokers, ClockSkewed, ClockStrobing, Fault, Stopped
from tests.jepsen.faults.zookeeper import sessions_of
from tests.jepsen.plans import Load
from tests.jepsen.stage import Settings, Stage
from tests.jepsen.told import failures, rebalances
from tests.jepsen.views import leaders

from barnabas.client.admin import OffsetSpec
from barnabas.ids import TopicPartition
from barnabas.records.batch import iter_headers

pytestmark = pytest.mark.faults

# No client ends by itself, so everything that ends is the fault of a clock.
LOAD = Load(crash_share=0)
# Timestamps are those of the leaders, and the indexes have many entries. A minute is not long enough for
# retention.
SETTINGS = Settings(
    topic_configs={
        "message.timestamp.type": "LogAppendTime",
        "index.interval.bytes": "500",
        "retention.ms": "600000",
    },
)
SKEW_SECONDS = 60.0
ENTRY = struct.Struct(">qi")
# Sessions with ZooKeeper end after 3 s, those of members after 6 s, transactions after 8 s.
LONG_SECONDS = 9.0
CALM_SECONDS = 2.0
SEARCHES = 50
ENTRIES_MIN = 10


def skewed(stage: Stage, chance: random.Random) -> Fault:
    """One clock is wrong, ahead or behind, all the time."""
    broker_id = chance.choice(sorted(stage.system.brokers))
    return ClockSkewed(stage.system, Brokers(broker_id), chance.choice((-1, 1)) * SKEW_SECONDS)


def strobing(stage: Stage, chance: random.Random) -> Fault:
    role = chance.choice((All(), Brokers(chance.choice(sorted(stage.system.brokers)))))
    seconds = chance.choice((-1, 1)) * SKEW_SECONDS
    return ClockStrobing(stage.system, role, seconds, period_seconds=chance.choice((0.05, 0.2, 1.0)))


@contextmanager
def nothing_ends(stage: Stage) -> Iterator[None]:
    """In this block no session of a broker ends, no leader changes, no operation of a client fails, and no
    member loses or gets a partition; and afterwards all records are there."""
    # The members of the groups have come one after the other.
    stage.system.wait_until(
        lambda: not rebalances(stage, time.monotonic() - CALM_SECONDS), "all groups are stable"
    )
    begin = time.monotonic()
    sessions, led = sessions_of(stage.system.zookeepers.servers[1]), leaders(stage)
    yield
    stage.wait_for_progress()
    assert sessions_of(stage.system.zookeepers.servers[1]) == sessions, "a session with ZooKeeper has ended"
    assert leaders(stage) == led
    assert failures(stage, ["send", "txn", "commit", "committed", "poll"], begin) == []
    assert rebalances(stage, begin) == []
    with stage.system.admin() as admin:
        starts = admin.list_offsets(dict.fromkeys(stage.partitions, OffsetSpec.EARLIEST))
    assert {place: found.offset for place, found in starts.items()} == dict.fromkeys(stage.partitions, 0)


def check_time_indexes(stage: Stage, chance: random.Random) -> None:
    """Entries are in the order of their times and of their offsets. A broker that stops writes all of them;
    it has a replica of each partition."""
    broker_id = chance.choice(sorted(stage.system.brokers))
    with stage.fault(Stopped(stage.system, Brokers(broker_id))):
        paths = list(stage.system.brokers[broker_id].data_dir.glob(f"{stage.topic}-*/*.timeindex"))
        found = {path: list(ENTRY.iter_unpack(path.read_bytes())) for path in paths}
    assert sum(map(len, found.values())) > ENTRIES_MIN, found
    for path, entries in found.items():
        for (time_ms, offset), (next_ms, next_offset) in pairwise(entries):
            assert time_ms < next_ms and offset < next_offset, f"{path}: {entries}"


def check_searches(stage: Stage, chance: random.Random) -> None:
    """A search by time finds the first batch that is not older, however the times go up and down."""
    place = TopicPartition(stage.topic, chance.randrange(stage.events.partitions))
    leader = stage.system.leader_of(place)
    with stage.system.admin() as admin:
        data = read_segments(stage.system.brokers[leader].data_dir / str(place)).data
        batches = [(header.max_timestamp, header.base_offset) for _, header in iter_headers(data)]
        for time_ms, _ in chance.sample(batches, min(len(batches), SEARCHES)):
            found = admin.list_offsets({place: time_ms})[place].offset
            assert found == next(offset for batch_ms, offset in batches if batch_ms >= time_ms)


@pytest.mark.parametrize("kind", [skewed, strobing])
def test_a_clock_is_wrong(run: Run, kind: Callable[[Stage, random.Random], Fault]) -> None:
    with run(LOAD, SETTINGS) as stage:
        with nothing_ends(stage), stage.fault(kind(stage, random.Random(stage.seed))):
            stage.run(LONG_SECONDS)
        check_searches(stage, random.Random(stage.seed))
        check_time_indexes(stage, random.Random(stage.seed))


def test_clocks_jump(run: Run) -> None:
    """Each broker's clock at another moment, to and fro."""
    with run(LOAD, SETTINGS) as stage:
        chance = random.Random(stage.seed)
        with nothing_ends(stage):
            for broker_id in chance.sample(sorted(stage.system.brokers), len(stage.system.brokers)):
                seconds = chance.uniform(-SKEW_SECONDS, SKEW_SECONDS)
                with stage.fault(ClockSkewed(stage.system, Brokers(broker_id), seconds)):
                    stage.run(chance.uniform(1, 3))
        check_searches(stage, random.Random(stage.seed))
        check_time_indexes(stage, random.Random(stage.seed))
