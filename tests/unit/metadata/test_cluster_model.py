"""Brokers come and go, leaders propose ISRs, partitions move: what must hold after every decision.

The machine also keeps what the replicas have: a log per replica, written by leaders and copied by followers
as in a real cluster, with records that are committed when the whole ISR has them and the ISR is large enough.
No clean election may lose a committed record."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.metadata.world import RULES, TOPIC_ID, World

from barnabas.errors import ErrorCode
from barnabas.metadata.elections import balance_leaders
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.isr_changes import ANY_EPOCH, IsrProposal
from barnabas.metadata.partition_changes import Election
from barnabas.metadata.parts import PartitionImage
from barnabas.metadata.records import NO_LEADER, RECOVERING

BROKERS = (1, 2, 3, 4)
PARTITIONS = ((1, 2, 3), (4,))
broker_ids = st.sampled_from(BROKERS)
indexes = st.integers(0, len(PARTITIONS) - 1)
replica_lists = st.lists(broker_ids, min_size=1, max_size=3, unique=True).map(tuple)


class ClusterMachine(RuleBasedStateMachine):
    @initialize(min_isr=st.sampled_from(["1", "2"]), unclean=st.sampled_from(["false", "true"]))
    def start(self, min_isr: str, unclean: str) -> None:
        self.world = World(*BROKERS)
        self.world.topic(*PARTITIONS, min_insync_replicas=min_isr, unclean_leader_election_enable=unclean)
        self.min_isr = int(min_isr)
        self.is_unclean_allowed = unclean == "true"
        self.is_asked_unclean = False
        self.before = self.world.image
        # The two sets of each reassignment that is in progress.
        self.moves: dict[int, tuple[set[int], set[int]]] = {}
        # How many records each replica has, and how many are committed. All logs are prefixes of one another
        # until an unclean election, after which the counts of that partition begin again.
        self.ends = {(index, broker): 0 for index in range(len(PARTITIONS)) for broker in BROKERS}
        self.committed = [0] * len(PARTITIONS)

    # ---- what happens

    @rule(broker=broker_ids)
    def die(self, broker: int) -> None:
        if broker in self.world.sessions:
            self.world.stop(broker)

    @rule(dead=st.sets(broker_ids, min_size=2))
    def die_together(self, dead: set[int]) -> None:
        self.world.stop(*dead & self.world.sessions.keys())

    @rule(broker=broker_ids)
    def come_back(self, broker: int) -> None:
        """After a clean stop; also while the old session lives, as after a quick restart."""
        self.world.start(broker)

    @rule(broker=broker_ids, lost=st.integers(0, 3))
    def come_back_without_a_tail(self, broker: int, lost: int) -> None:
        for index in range(len(PARTITIONS)):
            self.ends[index, broker] = max(0, self.ends[index, broker] - lost)
        self.world.start(broker, clean=False)
        for index in range(len(PARTITIONS)):
            if self.world.partition(index).replicas == (broker,):
                # Nobody can have what the only replica has lost.
                self.committed[index] = min(self.committed[index], self.ends[index, broker])

    @rule(broker=broker_ids)
    def come_back_slowly(self, broker: int) -> None:
        """It is registered, and still opens its logs."""
        self.world.register(broker)

    @rule(broker=broker_ids)
    def shut_down(self, broker: int) -> None:
        if self.world.image.alive(broker):
            self.world.beat(broker, wants_shutdown=True)

    @rule(index=indexes, count=st.integers(1, 3), acks_all=st.booleans())
    def produce(self, index: int, count: int, acks_all: bool) -> None:
        partition = self.world.partition(index)
        if self.world.image.alive(partition.leader):
            self.ends[index, partition.leader] += count
            for member in partition.isr if acks_all else ():
                self.ends[index, member] = self.ends[index, partition.leader]
            self.commit(index)

    @rule(index=indexes, broker=broker_ids, count=st.integers(1, 5))
    def replicate(self, index: int, broker: int, count: int) -> None:
        partition = self.world.partition(index)
        is_following = broker in partition.replicas and self.world.image.alive(broker)
        if is_following and self.world.image.alive(partition.leader):
            # A follower cuts off what the leader does not have, then copies.
            own = min(self.ends[index, broker], self.ends[index, partition.leader])
            self.ends[index, broker] = min(own + count, self.ends[index, partition.leader])
            self.commit(index)

    @rule(index=indexes, others=st.sets(broker_ids))
    def propose(self, index: int, others: set[int]) -> None:
        """The leader proposes itself and replicas that have every record it has committed."""
        partition = self.world.partition(index)
        leader = self.world.image.brokers.get(partition.leader)
        if leader is None or leader.fenced:
            return
        joining = {
            other
            for other in others
            if other in partition.isr or self.ends[index, other] >= self.ends[index, leader.id]
        }
        isr = tuple(sorted({leader.id, *joining}))
        members = tuple(
            (member, self.world.image.brokers[member].epoch if member in self.world.image.brokers else -1)
            for member in isr
        )
        if not set(partition.replicas).issuperset(isr):
            return
        result = self.world.propose(
            leader.id,
            IsrProposal(TOPIC_ID, index, partition.leader_epoch, partition.partition_epoch, members),
        )
        assert result in (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.NEW_LEADER_ELECTED) or (
            isinstance(result, PartitionImage) and result.leader == leader.id
        )
        self.commit(index)

    @rule(index=indexes, behind=st.integers(1, 3))
    def propose_too_late(self, index: int, behind: int) -> None:
        partition = self.world.partition(index)
        if partition.leader in self.world.image.brokers:
            proposal = IsrProposal(TOPIC_ID, index, partition.leader_epoch - behind, 0, ((1, ANY_EPOCH),))
            assert self.world.propose(partition.leader, proposal) is ErrorCode.FENCED_LEADER_EPOCH

    @rule(index=indexes, wanted=replica_lists)
    def move(self, index: int, wanted: tuple[int, ...]) -> None:
        partition = self.world.partition(index)
        original = set(partition.replicas) - set(partition.adding_replicas)
        if self.world.move(wanted, index) is ErrorCode.NONE:
            self.moves[index] = (original, set(wanted))

    @rule(index=indexes)
    def cancel(self, index: int) -> None:
        was_moving = self.world.partition(index).is_reassigning
        error = self.world.move(None, index)
        if error is ErrorCode.NONE:
            assert set(self.world.partition(index).replicas) == self.moves[index][0]
        else:
            assert was_moving is (error is ErrorCode.INVALID_REPLICA_ASSIGNMENT)

    @rule(index=indexes, election=st.sampled_from([Election.PREFERRED, Election.UNCLEAN]))
    def elect(self, index: int, election: Election) -> None:
        self.is_asked_unclean = election is Election.UNCLEAN
        self.world.elect(election, index)

    @rule()
    def balance(self) -> None:
        while self.world.decide(balance_leaders(self.world.image, RULES)):
            pass

    @rule()
    def change_the_controller(self) -> None:
        """The next controller has only the log."""
        offset = self.world.image.offset
        rebuilt = MetadataImage().apply(self.world.image.records())
        self.world.image = replace(rebuilt, offset=offset)
        self.world.reconcile()

    def commit(self, index: int) -> None:
        """The high watermark follows the ISR, if that is large enough."""
        partition = self.world.partition(index)
        min_isr = min(self.min_isr, len(partition.replicas))
        if partition.has_leader and len(partition.isr) >= min_isr:
            self.committed[index] = max(
                self.committed[index], min(self.ends[index, member] for member in partition.isr)
            )

    # ---- what holds

    @invariant()
    @precondition(lambda self: hasattr(self, "world"))
    def every_partition_is_sound(self) -> None:
        for index in range(len(PARTITIONS)):
            self.check_members(self.world.partition(index))
            self.check_epochs(index)
            self.check_move(index)
            self.check_records(index)
        self.is_asked_unclean = False
        self.before = self.world.image

    def check_members(self, partition: PartitionImage) -> None:
        replicas = set(partition.replicas)
        assert len(replicas) == len(partition.replicas) >= 1
        assert replicas.issuperset(partition.isr) and replicas.issuperset(partition.elr)
        assert not set(partition.isr) & set(partition.elr)
        is_kept = partition.replicas == (partition.leader,) and partition.leader in self.world.sessions
        assert is_kept or all(self.world.image.active(member) for member in partition.isr)
        if partition.leader == NO_LEADER:
            assert not partition.isr
            # Nobody who may lead is left out.
            assert not any(self.world.image.active(member) for member in partition.elr)
        else:
            assert partition.leader in partition.isr
            assert not partition.last_known_elr
        if partition.leader_recovery_state == RECOVERING:
            assert partition.isr in ((), (partition.leader,))

    def check_epochs(self, index: int) -> None:
        old, new = self.before.topics["a"].partitions[index], self.world.partition(index)
        assert new.leader_epoch >= old.leader_epoch and new.partition_epoch >= old.partition_epoch
        if new.leader != old.leader:
            assert new.leader_epoch > old.leader_epoch
        if new != old:
            assert new.partition_epoch > old.partition_epoch
        if set(old.replicas) - set(new.replicas):
            assert new.leader_epoch > old.leader_epoch

    def check_move(self, index: int) -> None:
        partition = self.world.partition(index)
        if not partition.is_reassigning:
            sets = self.moves.pop(index, None)
            assert sets is None or set(partition.replicas) in sets
        else:
            original, target = self.moves[index]
            assert set(partition.replicas) == original | target

    def check_records(self, index: int) -> None:
        """A leader has every committed record, unless it was elected unclean."""
        old, new = self.before.topics["a"].partitions[index], self.world.partition(index)
        if not new.has_leader or new.leader == old.leader:
            return
        if new.leader_recovery_state == RECOVERING or self.is_asked_unclean or self.is_unclean_allowed:
            # Records may be lost. What follows begins with the log of the new leader.
            self.committed[index] = min(self.committed[index], self.ends[index, new.leader])
            for broker in BROKERS:
                self.ends[index, broker] = min(self.ends[index, broker], self.ends[index, new.leader])
        assert self.ends[index, new.leader] >= self.committed[index]


ClusterMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestCluster = ClusterMachine.TestCase
