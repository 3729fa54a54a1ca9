"""What replication needs from the broker around it. The defaults are those of a broker that is alone.

A test or a simulation passes its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.clock import Clock, SystemClock
from barnabas.replication.throttling import RateLimit

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition

# In a proposal: the leader does not know the epoch of this broker.
NO_BROKER_EPOCH = -1


class Followers(Protocol):
    """Fetches the partitions that other brokers lead (replication/following/)."""

    def follow(self, partition: Partition) -> None:
        """Fetch from `partition.leader` under `partition.leader_epoch`, both of which may be new.

        The partition has stopped leading. It may be followed already, under an older leader or epoch."""
        ...

    def let_go(self, partition: Partition) -> None:
        """Stop fetching: the partition gets led here in this turn, has no leader, or is leaving this broker.

        It may be one that was never followed. Nothing may be appended to its log after this call."""
        ...


class NoFollowers:
    """All partitions are led here."""

    def follow(self, partition: Partition) -> None:
        pass

    def let_go(self, partition: Partition) -> None:
        pass


class IsrProposal(NamedTuple):
    """The in-sync replicas that a leader proposes, each with the broker epoch it fetched under. The proposal
    is valid only for these epochs of the leader and the partition."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]

    @property
    def members(self) -> tuple[int, ...]:
        return tuple(broker_id for broker_id, _ in self.isr)


class IsrChanges(Protocol):
    """Sends the proposals of leaders to the controller."""

    def propose(self, partition: Partition, proposal: IsrProposal) -> None:
        """Send it soon. The result comes back in a later turn: `partition.isr_accepted` or
        `partition.isr_refused`, exactly one of them, once."""
        ...


class NoIsrChanges:
    """There is no controller: a proposal is never answered."""

    def propose(self, partition: Partition, proposal: IsrProposal) -> None:
        pass


def _nobody(_: int) -> int | None:
    return None


def _always(_: float) -> bool:
    return True


@dataclass(slots=True)
class Surroundings:
    """What all partitions of a broker share. `lag_seconds_max`: replica.lag.time.max.ms. `living_epoch`: the
    epoch of a broker that is registered and not fenced, or None. `joining_epoch`: the same, but also None for
    a broker that is shutting down: the controller lets it join no ISR. `is_image_newest_since`: whether the
    metadata that this broker has were the newest ones at some time after this moment, so that nobody else had
    its leaderships then."""

    broker_id: int
    clock: Clock = field(default_factory=SystemClock)
    lag_seconds_max: float = 30.0
    isr_changes: IsrChanges = field(default_factory=NoIsrChanges)
    living_epoch: Callable[[int], int | None] = _nobody
    joining_epoch: Callable[[int], int | None] = _nobody
    is_image_newest_since: Callable[[float], bool] = _always
    # leader.replication.throttled.rate.
    throttle: RateLimit = field(default_factory=lambda: RateLimit(SystemClock()))
    # Read by /metrics.
    isr_shrinks: int = 0
    isr_expands: int = 0
    failed_isr_changes: int = 0
