"""The leader's view of its followers: how far each has come, which of them are in sync, and what follows from
that: the high watermark, and proposals to change the ISR.

Only the leader of a partition with other replicas has this; each leader epoch has a new one. Pure
bookkeeping: the clock, the metadata and the controller are behind `Surroundings`. Owned by the event loop."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode, KafkaError
from barnabas.replication.ports import NO_BROKER_EPOCH, IsrProposal, Surroundings
from barnabas.replication.throttling import names_replica
from barnabas.replication.waiters import Waiters

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition

logger = logging.getLogger(__name__)

UNKNOWN_OFFSET = -1
NEVER = float("-inf")
# A follower that asks so often for the same records may have got damaged ones.
REPEATS_OF_DAMAGE = 5

# The controller has not applied the proposal, and the partition epoch in it is the current one.
NOT_APPLIED = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
# The controller knows newer metadata than this broker, which will get it soon.
OVERTAKEN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


class FollowerState:
    """What the leader knows about one follower. Times are those of the monotonic clock.

    `caught_up_at`: the last time at which the follower had everything that the leader had then.
    `followed_at`: it has sent its last fetch after this time. While a leader is paused, fetches wait in its
    sockets, at most two of each follower: it goes over to a second connection once. So only the second fetch
    after this one was certainly sent later."""

    __slots__ = (
        "broker_epoch",
        "caught_up_at",
        "end_offset",
        "fetched_at",
        "fetched_before_at",
        "followed_at",
        "leader_end_at_fetch",
        "log_start_offset",
        "repeats",
    )

    def __init__(self, caught_up_at: float) -> None:
        self.end_offset = self.log_start_offset = UNKNOWN_OFFSET
        self.caught_up_at = caught_up_at
        self.fetched_at = self.fetched_before_at = self.followed_at = NEVER
        self.leader_end_at_fetch = UNKNOWN_OFFSET
        self.broker_epoch = NO_BROKER_EPOCH
        # How often it has asked for the same records again.
        self.repeats = 0

    def record(
        self, broker_epoch: int, offset: int, log_start_offset: int, leader_end: int, now: float
    ) -> None:
        if offset >= leader_end:
            self.caught_up_at = now
        elif offset >= self.leader_end_at_fetch and self.fetched_at > self.caught_up_at:
            # It has all that the leader had when it fetched the last time.
            self.caught_up_at = self.fetched_at
        self.repeats = self.repeats + 1 if self.end_offset == offset < self.leader_end_at_fetch else 0
        self.end_offset, self.log_start_offset = offset, log_start_offset
        self.followed_at, self.fetched_before_at = self.fetched_before_at, self.fetched_at
        self.leader_end_at_fetch, self.fetched_at = leader_end, now
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end: int, now: float, lag_seconds_max: float) -> bool:
        return self.end_offset == leader_end or now - self.caught_up_at <= lag_seconds_max


class Leading:
    """`maximal_isr`: the ISR, and while a change of it is proposed also those that would be added. The high
    watermark counts all of them, so that it is right whether the proposal is accepted or not."""

    def __init__(self, partition: Partition, surroundings: Surroundings) -> None:
        self._partition = partition
        self._surroundings = surroundings
        self.epoch_start_offset: int = partition.log.log_end_offset
        self.followers: dict[int, FollowerState] = {}
        self.proposal: IsrProposal | None = None
        self.maximal_isr: tuple[int, ...] = ()
        # Those who wait until all living replicas have moved their log start.
        self.deleted = Waiters()

    def take_metadata(self) -> None:
        """The replicas or the ISR of the partition may have changed. A proposal that was made before is
        decided now, or was overtaken."""
        partition = self._partition
        now = self._surroundings.clock.monotonic()
        me = self._surroundings.broker_id
        followers = {}
        for broker_id in partition.replicas:
            if broker_id != me:
                known = self.followers.get(broker_id)
                in_sync = broker_id in partition.isr
                if known is not None and broker_id in self.maximal_isr and not in_sync:
                    # It was taken out, perhaps because its disk failed: do not wait for it to join again.
                    known.caught_up_at = NEVER
                followers[broker_id] = known or FollowerState(now if in_sync else NEVER)
        self.followers = followers
        self.proposal = None
        self.maximal_isr = partition.isr
        self.update_high_watermark(now)

    # ---- fetches of followers

    def record_fetch(self, replica_id: int, broker_epoch: int, offset: int, log_start_offset: int) -> None:
        """A follower has everything below `offset`, under the current leader epoch: the high watermark may
        move."""
        state = self.followers.get(replica_id)
        if state is None:
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"broker {replica_id} is not a replica")
        current = self._surroundings.living_epoch(replica_id)
        if current is not None and NO_BROKER_EPOCH < broker_epoch < current:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {replica_id} has been started again since this request",
            )
        now = self._surroundings.clock.monotonic()
        old_end, old_start = state.end_offset, state.log_start_offset
        end = self._partition.log.log_end_offset
        state.record(broker_epoch, offset, log_start_offset, end, now)
        if state.repeats % REPEATS_OF_DAMAGE == REPEATS_OF_DAMAGE - 1:
            # It could not take the records that it got, perhaps because they are damaged here.
            self._partition.log.check_batch_at(offset)
        if replica_id not in self.maximal_isr:
            self._expand(replica_id, state)
        if offset != old_end:
            self.update_high_watermark(now)
        if self.deleted.waiting and log_start_offset != old_start:
            self.deleted.advance(self.low_watermark)

    def is_confirmed_since(self, moment: float) -> bool:
        """Whether nobody else led at some time after `moment`: the metadata say so, or, while the store is
        away, all who could lead instead have sent a fetch to this leader since then.

        If the ISR is too small, also replicas outside of it may be elected (KIP-966)."""
        if self._surroundings.is_image_newest_since(moment):
            return True
        partition = self._partition
        eligible = self.maximal_isr if len(partition.isr) >= partition.min_isr else partition.replicas
        return all(
            state.followed_at > moment for broker_id, state in self.followers.items() if broker_id in eligible
        )

    @property
    def low_watermark(self) -> int:
        """The lowest log start of all replicas whose brokers live; below it no replica has records."""
        lowest: int = self._partition.log.log_start_offset
        for broker_id, state in self.followers.items():
            if state.log_start_offset < lowest and self._surroundings.living_epoch(broker_id) is not None:
                lowest = state.log_start_offset
        return lowest

    # ---- throttled replicas

    def must_wait(self, replica_id: int) -> bool:
        """Whether the follower gets no records now, because replication is over the limit of
        leader.replication.throttled.rate. A follower in the ISR is not held back: it would leave the ISR."""
        return (
            self._counts_for_throttle
            and replica_id not in self._partition.isr
            and self._surroundings.throttle.is_exceeded()
        )

    def sent(self, size: int) -> None:
        """Records of this size are sent to a follower."""
        if self._counts_for_throttle:
            self._surroundings.throttle.record(size)

    @property
    def _counts_for_throttle(self) -> bool:
        if not self._surroundings.throttle.is_set:
            return False
        replicas = self._partition.log.config.leader_replication_throttled_replicas
        index = self._partition.topic_partition.partition
        return names_replica(replicas, index, self._surroundings.broker_id)

    # ---- the high watermark

    def update_high_watermark(self, now: float) -> None:
        """The least end of the maximal ISR, and of replicas that are about to join it: otherwise they could
        never reach the high watermark of a busy partition. It does not move while the ISR is too small."""
        partition = self._partition
        is_large_enough = len(partition.isr) >= partition.min_isr
        end: int = partition.log.log_end_offset
        least = end
        is_alone = is_large_enough and len(self.maximal_isr) == 1
        for broker_id, state in self.followers.items():
            counts = broker_id in self.maximal_isr
            if not counts and self._is_joining(broker_id, state, end, now):
                counts, is_alone = True, False
            if counts and state.end_offset < least:
                least = state.end_offset
        partition.set_alone(is_alone)
        if is_large_enough:
            partition.raise_high_watermark(least)

    def _is_joining(self, broker_id: int, state: FollowerState, end: int, now: float) -> bool:
        return state.is_caught_up(end, now, self._surroundings.lag_seconds_max) and self._is_eligible(
            broker_id, state
        )

    def _is_eligible(self, broker_id: int, state: FollowerState) -> bool:
        """Whether the controller would let the replica join: its broker lives, and its last fetch was sent by
        its present incarnation (KIP-903)."""
        current = self._surroundings.joining_epoch(broker_id)
        return current is not None and state.broker_epoch in (NO_BROKER_EPOCH, current)

    # ---- changes of the ISR

    def _expand(self, broker_id: int, state: FollowerState) -> None:
        """Propose a replica that has reached the high watermark and the start of this leader epoch: records
        below that start may be committed although the high watermark of a new leader is not there yet."""
        partition = self._partition
        if (
            self.proposal is None
            and state.end_offset >= partition.high_watermark
            and state.end_offset >= self.epoch_start_offset
            and self._is_eligible(broker_id, state)
        ):
            self._propose((*partition.isr, broker_id))

    def shrink(self) -> None:
        """Propose to remove the replicas that have not caught up for too long; called periodically."""
        if self._partition.log.offline:
            # Followers are not slow: they cannot be served. This replica has to leave, not they.
            return
        now = self._surroundings.clock.monotonic()
        if self.proposal is None:
            slow = self._out_of_sync(now)
            if slow:
                partition = self._partition
                rest = tuple(member for member in partition.isr if member not in slow)
                logger.info(
                    "%s: replicas %s have not caught up for %g s; proposing the ISR %s",
                    partition.topic_partition,
                    sorted(slow),
                    self._surroundings.lag_seconds_max,
                    rest,
                )
                self._propose(rest)
        # A replica that was about to join may have given up, and a dead one does not delay a deletion.
        self.update_high_watermark(now)
        if self.deleted.waiting:
            self.deleted.advance(self.low_watermark)

    def _out_of_sync(self, now: float) -> set[int]:
        end: int = self._partition.log.log_end_offset
        lag_seconds_max = self._surroundings.lag_seconds_max
        return {
            broker_id
            for broker_id, state in self.followers.items()
            if broker_id in self._partition.isr and not state.is_caught_up(end, now, lag_seconds_max)
        }

    def _propose(self, members: Iterable[int]) -> None:
        partition, me = self._partition, self._surroundings.broker_id
        isr = []
        for broker_id in members:
            if broker_id == me:
                epoch = self._surroundings.living_epoch(me)
                isr.append((me, NO_BROKER_EPOCH if epoch is None else epoch))
            else:
                isr.append((broker_id, self.followers[broker_id].broker_epoch))
        self.proposal = IsrProposal(partition.leader_epoch, partition.partition_epoch, tuple(isr))
        added = [member for member in self.proposal.members if member not in partition.isr]
        self.maximal_isr = (*partition.isr, *added)
        self._surroundings.isr_changes.propose(partition, self.proposal)

    def accepted(self, proposal: IsrProposal) -> bool:
        """Whether this is the proposal that the leader waits for; counts it."""
        if proposal is not self.proposal:
            return False
        before = len(self._partition.isr)
        self._surroundings.isr_expands += len(proposal.isr) > before
        self._surroundings.isr_shrinks += len(proposal.isr) < before
        return True

    def refused(self, proposal: IsrProposal, code: ErrorCode) -> None:
        if proposal is not self.proposal:
            return
        self._surroundings.failed_isr_changes += 1
        partition = self._partition
        if code in NOT_APPLIED:
            self.proposal = None
            self.maximal_isr = partition.isr
            self.update_high_watermark(self._surroundings.clock.monotonic())
        elif code not in OVERTAKEN:
            # Whether it was applied is not known, so the larger set goes on counting.
            self._surroundings.isr_changes.propose(partition, proposal)
        logger.info("%s: the ISR %s was refused: %s", partition.topic_partition, proposal.members, code.name)
