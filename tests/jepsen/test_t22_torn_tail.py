"""A crash in the middle of a write leaves a part of the last batch, zeros or garbage at the end of a log:
recovery cuts to the last complete batch, offsets go on without gap or repetition, and replicas agree."""

import dataclasses
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.jepsen.conftest import Run
from tests.jepsen.faults import Damaged, Followers, Leader, Role
from tests.jepsen.faults.damage import Damage, GarbageTail, TornTail, batch_positions
from tests.jepsen.plans import Load
from tests.support.logs import SMALL, LogBench

ONE_SEGMENT = dataclasses.replace(SMALL, segment_bytes=1 << 20)
BATCHES = 6
PRODUCER = {"producer_id": 7, "producer_epoch": 0}
GZIP = 1
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "compressed": {"compression": GZIP},
    "idempotent": PRODUCER,
    "transactional": {**PRODUCER, "transactional": True},
}


class TornLog:
    """A leader's log of several batches, whose sizes depend on the seed, and that of its follower."""

    def __init__(self, directory: Path, kind: str, chance: Random) -> None:
        self.kind = kind
        self._values = [[chance.randbytes(chance.randint(1, 20)) for _ in range(2)] for _ in range(BATCHES)]
        self.bench = LogBench(directory / "leader", ONE_SEGMENT)
        for number in range(BATCHES):
            self.append(number)
        self.path = self.bench.file(".log")
        self.whole = self.path.read_bytes()
        self.records = self.bench.records()
        self.last_batch = batch_positions(self.path)[-1]
        self.follower = LogBench(directory / "follower", ONE_SEGMENT)
        self.follower.log.append_from_start(memoryview(self.whole), 0)

    def append(self, number: int) -> Any:
        fields = dict(KINDS[self.kind])
        if "producer_id" in fields:
            fields["base_sequence"] = number * 2
        return self.bench.append(*self._values[number], **fields)

    def recover(self, data: bytes) -> None:
        """The process dies, and this is what is on the disk at the next start."""
        self.bench.crash()
        self.path.write_bytes(data)
        self.bench.start()
        assert not self.bench.log.corrupt_ranges

    def check_last_batch_is_gone(self) -> None:
        assert self.path.read_bytes() == self.whole[: self.last_batch]
        assert self.bench.records() == self.records[:-2]
        assert self.bench.log.log_end_offset == self.records[-2].offset

    def check_producer_goes_on(self) -> None:
        """It sends the last two batches again: one is a duplicate, the other is not."""
        before, last = self.append(BATCHES - 2), self.append(BATCHES - 1)
        if "producer_id" in KINDS[self.kind]:
            assert (before.duplicate, before.first_offset) == (True, self.records[-4].offset)
            assert (last.duplicate, last.first_offset) == (False, self.records[-2].offset)
            assert self.bench.records() == self.records
        else:
            offsets = [read.offset for read in self.bench.records()]
            assert offsets == list(range(len(self.records) + 2))


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_batch_is_torn_at_every_byte(tmp_path: Path, kind: str, seed: int) -> None:
    torn = TornLog(tmp_path, kind, Random(seed))
    for size in range(torn.last_batch, len(torn.whole)):
        torn.recover(torn.whole[:size])
        torn.check_last_batch_is_gone()
        if (size - torn.last_batch) % 20 == 0:
            torn.check_producer_goes_on()
    torn.recover(torn.whole)
    assert torn.bench.records() == torn.records


@pytest.mark.parametrize("kind", KINDS)
def test_a_torn_follower_takes_the_rest_from_its_leader(tmp_path: Path, kind: str, seed: int) -> None:
    torn = TornLog(tmp_path, kind, Random(seed))
    path = torn.follower.file(".log")
    for size in range(torn.last_batch, len(torn.whole)):
        torn.follower.crash()
        path.write_bytes(torn.whole[:size])
        torn.follower.start()
        assert torn.follower.log.log_end_offset == torn.records[-2].offset
        torn.follower.log.append_from_start(memoryview(torn.whole)[torn.last_batch :], 0)
        assert path.read_bytes() == torn.whole


@pytest.mark.parametrize("kind", KINDS)
def test_zeros_and_garbage_after_the_last_batch(tmp_path: Path, kind: str, seed: int) -> None:
    chance = Random(seed)
    torn = TornLog(tmp_path, kind, chance)
    counts = [1, 11, 12, 60, 61, 62, 4096, chance.randint(1, 10_000)]
    tails = [bytes(count) for count in counts] + [chance.randbytes(count) for count in counts]
    # The length is there and the rest is not; and the other way round.
    last = torn.whole[torn.last_batch :]
    tails += [last[:12] + bytes(len(last) - 12), bytes(12) + last[12:], last[:61] + bytes(len(last) - 61)]
    for tail in tails:
        torn.recover(torn.whole + tail)
        assert torn.path.read_bytes() == torn.whole
        assert torn.bench.records() == torn.records
        torn.recover(torn.whole[: torn.last_batch] + tail)
        torn.check_last_batch_is_gone()
    torn.check_producer_goes_on()
    torn.bench.restart(clean=True)
    assert torn.path.stat().st_size == torn.bench.log.active.size


# ---- a cluster

LOAD = Load(writers=1, pipelining_writers=1, transactional_writers=1, readers=1, modern_groups=0, drivers=1)


def test_a_broker_with_a_torn_log_starts_again(run: Run) -> None:
    """It has lost what it had acknowledged, and is back before its session ends."""
    with run(LOAD) as stage:
        chance = Random(stage.seed)
        partition = chance.randrange(3)
        role: Role = Leader(stage.topic, partition)
        if chance.random() < 0.5:
            role = Followers(stage.topic, partition, count=1)
        tails: list[Damage] = [
            TornTail(chance.randint(1, 60)),
            TornTail(chance.randint(0, 11)),
            GarbageTail(chance.randint(1, 5000)),
            GarbageTail(chance.randint(1, 5000), seed=stage.seed),
        ]
        with stage.fault(Damaged(stage.system, role, (stage.topic, partition), chance.choice(tails))):
            pass
