"""A leader among followers that stop, lag and lose their tails, and a controller whose answers get lost, come
late or are overtaken by the metadata.

Whatever happens: what is below the high watermark is in the log of every member of the ISR of the controller,
so that any of them can lead next; and the high watermark never goes back."""

import dataclasses
import random

import pytest
from tests.unit.replication.conftest import LAG_MS, ME, Held
from tests.unit.replication.test_leading import ALL, EPOCHS, Story

from barnabas.errors import ErrorCode
from barnabas.metadata.parts import PartitionImage
from barnabas.metadata.records import BrokerRecord
from barnabas.replication.ports import IsrProposal

FOLLOWERS = [broker for broker in ALL if broker != ME]
STEPS = 150


class World(Story):
    """The truth: how far each follower is, and what the controller has decided."""

    def __init__(self, held: Held, seed: int) -> None:
        super().__init__(held, min_isr=seed % 3 + 1)
        self.random = random.Random(seed)
        self.ends = dict.fromkeys(FOLLOWERS, 0)
        self.epochs = dict(EPOCHS)
        self.decided = held.image.topics["story"].partitions[0]
        self.seen_high_watermark = 0

    def step(self) -> None:
        actions = [
            (self.append_some, 4),
            (self.follower_fetches, 10),
            (self.time_passes, 2),
            (self.controller_decides, 4),
            (self.metadata_arrives, 3),
            (self.broker_fails, 1),
        ]
        choices, weights = zip(*actions, strict=True)
        self.random.choices(choices, weights)[0]()
        self.check_invariants()

    def append_some(self) -> None:
        self.append(self.random.randint(1, 3))

    def follower_fetches(self) -> None:
        follower = self.random.choice(FOLLOWERS)
        end = self.partition.log.log_end_offset
        self.ends[follower] = self.random.randint(self.ends[follower], end)
        self.fetch(follower, self.ends[follower], self.epochs[follower])

    def time_passes(self) -> None:
        self.pass_ms(self.random.randint(1, LAG_MS))
        self.check()

    def controller_decides(self) -> None:
        """Take or refuse the newest proposal; the answer arrives, or is lost after a change that was made."""
        if not self.held.proposals.made:
            return
        partition, proposal = self.held.proposals.made.pop()
        code = self.decide(proposal)
        if self.random.random() < 0.3:
            partition.isr_refused(proposal, ErrorCode.REQUEST_TIMED_OUT)
        elif code != ErrorCode.NONE:
            partition.isr_refused(proposal, code)
        else:
            partition.isr_accepted(proposal, proposal.members, self.decided.partition_epoch)

    def decide(self, proposal: IsrProposal) -> ErrorCode:
        if proposal.partition_epoch != self.decided.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        brokers = self.held.image.brokers
        if any(epoch not in (-1, brokers[member].epoch) for member, epoch in proposal.isr):
            return ErrorCode.INELIGIBLE_REPLICA
        if any(brokers[member].fenced for member in proposal.members):
            return ErrorCode.INELIGIBLE_REPLICA
        self.change_isr(proposal.members)
        return ErrorCode.NONE

    def change_isr(self, isr: tuple[int, ...]) -> None:
        epoch = self.decided.partition_epoch + 1
        self.decided = dataclasses.replace(self.decided, isr=isr, partition_epoch=epoch)

    def metadata_arrives(self) -> None:
        """The newest, once or again, or older than the answer to a proposal that came meanwhile."""
        self.partition.follow(self.decided)

    def broker_fails(self) -> None:
        """A follower loses its session and a part of its log, and comes back as a new incarnation."""
        follower = self.random.choice(FOLLOWERS)
        self.change_isr(tuple(member for member in self.decided.isr if member != follower))
        self.ends[follower] = self.random.randint(0, self.ends[follower])
        self.epochs[follower] += 100
        record = BrokerRecord(follower, self.epochs[follower], b"i" * 16, (), fenced=True)
        self.held.apply(record)
        self.held.apply(dataclasses.replace(record, fenced=False))

    def check_invariants(self) -> None:
        high_watermark = self.high_watermark
        assert high_watermark >= self.seen_high_watermark
        self.seen_high_watermark = high_watermark
        assert high_watermark <= self.partition.log.log_end_offset
        for member in self.decided.isr:
            if member != ME:
                assert self.ends[member] >= high_watermark, f"broker {member} may be elected"
        permit = self.partition.permit()
        if permit.commits_at_once:
            assert self.decided.isr == (ME,)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_committed_is_on_every_replica_that_may_lead(held: Held, seed: int) -> None:
    world = World(held, seed)
    for _ in range(STEPS):
        world.step()


def test_the_world_gets_on(held: Held) -> None:
    """The random steps must commit records and change the ISR, or they would show nothing."""
    world = World(held, 1)
    for _ in range(5 * STEPS):
        world.step()
    assert world.seen_high_watermark > 10
    surroundings = held.replicas.surroundings
    assert surroundings.isr_expands > 3
    assert isinstance(world.decided, PartitionImage)
    assert world.decided.partition_epoch > 10
