"""One change of a partition: completes a reassignment, keeps the eligible leader replicas, elects. Pure.

Callers say what should become of a partition (`Target`) and who may lead it (`Electorate`). The function
`change_partition` returns the record, or None if nothing changes. The rules are those of Kafka 4 with
KIP-966:

Leader. The leader stays while it is in the ISR and may lead. Otherwise the first replica, in the order of the
assignment, that is in the ISR and may lead. If the ISR is empty, the eligible leader replicas (ELR) take its
place. If both are empty, the last known leader leads again when it is back; and where unclean elections are
allowed, any replica that may lead. These two elections are unclean: records may be lost, the ISR is only the
new leader, and it is RECOVERING.

ELR. A replica that leaves the ISR while the ISR is smaller than min.insync.replicas has every committed
record: no record is committed while the ISR is that small. So it may lead later, unless it stopped uncleanly
and may have lost records. When the ISR is large enough again, the ELR is empty. A leader that finds the ISR
empty leaves its id in `last_known_elr`.

Epochs. Each change raises the partition epoch. A new leader, no leader, and a replica that leaves the
assignment raise the leader epoch too: the latter stops fetches of the replica that was removed."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, TypeVar

from barnabas.ids import Uuid
from barnabas.metadata.parts import PartitionImage
from barnabas.metadata.records import NO_LEADER, RECOVERING, PartitionChangeRecord

BrokerIds: TypeAlias = tuple[int, ...]
Value = TypeVar("Value")


class Election(Enum):
    """PREFERRED changes to the first replica if it can lead. UNCLEAN may elect a replica out of sync."""

    PREFERRED = 0
    ONLINE = 1
    UNCLEAN = 2


@dataclass(frozen=True, slots=True)
class Electorate:
    """Who may lead, and how the leader is elected. `min_isr` is min.insync.replicas of the topic."""

    may_lead: Callable[[int], bool]
    min_isr: int = 1
    election: Election = Election.ONLINE


@dataclass(frozen=True, slots=True)
class Target:
    """The values that a partition should get, before the election.

    Replicas in `unclean` stopped uncleanly, so they are not eligible leaders."""

    replicas: BrokerIds
    isr: BrokerIds
    adding: BrokerIds
    removing: BrokerIds
    leader_recovery_state: int
    unclean: frozenset[int] = frozenset()

    @classmethod
    def unchanged(cls, partition: PartitionImage, isr: BrokerIds | None = None) -> "Target":
        """What the partition has, with another ISR if one is given."""
        return cls(
            partition.replicas,
            partition.isr if isr is None else isr,
            partition.adding_replicas,
            partition.removing_replicas,
            partition.leader_recovery_state,
        )


def change_partition(
    topic_id: Uuid, index: int, old: PartitionImage, target: Target, electorate: Electorate
) -> PartitionChangeRecord | None:
    """The record that brings the partition to the target, with the leader that is elected there."""
    replicas, isr, adding, removing = _complete_reassignment(target)
    elr = _eligible(old, isr, replicas, target.unclean, electorate.min_isr)
    leader, is_unclean = _elect(old, replicas, isr, elr, electorate)
    recovery_state = target.leader_recovery_state
    if is_unclean:
        isr, elr, recovery_state = (leader,), (), RECOVERING
    elif leader != NO_LEADER and leader not in isr:
        isr, elr = (leader,), tuple(replica for replica in elr if replica != leader)
    new = PartitionImage(
        replicas,
        isr,
        leader,
        old.leader_epoch,
        old.partition_epoch,
        old.directories,
        adding,
        removing,
        elr,
        _last_known_leader(old, leader, isr),
        recovery_state,
    )
    return _record(topic_id, index, old, new, is_unclean=is_unclean)


def merged(old: PartitionImage, change: PartitionChangeRecord) -> PartitionImage:
    """The partition after the change."""
    return PartitionImage(
        _changed(change.replicas, old.replicas),
        _changed(change.isr, old.isr),
        _changed(change.leader, old.leader),
        old.leader_epoch + (change.leader is not None),
        old.partition_epoch + 1,
        _changed(change.directories, old.directories),
        _changed(change.adding_replicas, old.adding_replicas),
        _changed(change.removing_replicas, old.removing_replicas),
        _changed(change.elr, old.elr),
        _changed(change.last_known_elr, old.last_known_elr),
        _changed(change.leader_recovery_state, old.leader_recovery_state),
    )


def _changed(new: Value | None, old: Value) -> Value:
    return old if new is None else new


def _record(
    topic_id: Uuid, index: int, old: PartitionImage, new: PartitionImage, *, is_unclean: bool
) -> PartitionChangeRecord | None:
    """The record of an unclean election always has the recovery state, also if the last election was unclean:
    that is how such a record is recognized."""
    if new == old:
        return None
    is_new_state = new.leader_recovery_state != old.leader_recovery_state
    removes_replicas = not set(new.replicas).issuperset(old.replicas)
    return PartitionChangeRecord(
        topic_id,
        index,
        new.leader if new.leader != old.leader or removes_replicas else None,
        _if_new(new.isr, old.isr),
        _if_new(new.replicas, old.replicas),
        _if_new(new.adding_replicas, old.adding_replicas),
        _if_new(new.removing_replicas, old.removing_replicas),
        _if_new(new.elr, old.elr),
        _if_new(new.last_known_elr, old.last_known_elr),
        new.leader_recovery_state if is_unclean or is_new_state else None,
    )


def _if_new(new: BrokerIds, old: BrokerIds) -> BrokerIds | None:
    return None if new == old else new


def _complete_reassignment(target: Target) -> tuple[BrokerIds, BrokerIds, BrokerIds, BrokerIds]:
    """Replicas, ISR, adding and removing replicas. A reassignment ends when every replica of the new
    assignment is in the ISR."""
    if target.adding or target.removing:
        replicas = without(target.replicas, target.removing)
        isr = without(target.isr, target.removing)
        if replicas and set(isr).issuperset(replicas):
            return replicas, isr, (), ()
    return target.replicas, target.isr, target.adding, target.removing


def _eligible(
    old: PartitionImage, isr: BrokerIds, replicas: BrokerIds, unclean: frozenset[int], min_isr: int
) -> BrokerIds:
    if len(isr) >= min(min_isr, len(replicas)):
        return ()
    candidates = {*old.elr, *old.isr}.difference(isr)
    if len(replicas) > 1:
        # The only replica is eligible whatever it has lost: no other has more.
        candidates -= unclean
    return tuple(replica for replica in replicas if replica in candidates)


def _elect(
    old: PartitionImage, replicas: BrokerIds, isr: BrokerIds, elr: BrokerIds, electorate: Electorate
) -> tuple[int, bool]:
    """The leader or NO_LEADER, and whether the election is unclean."""
    may_lead = electorate.may_lead
    eligible = isr or elr
    # The order in which replicas are asked; the current leader comes before all but a preferred one.
    order = [old.leader, *replicas]
    if electorate.election is Election.PREFERRED:
        order.insert(0, replicas[0])
    for candidate in order:
        if candidate in eligible and may_lead(candidate):
            return candidate, False
    if not eligible:
        for candidate in old.last_known_elr:
            if candidate in replicas and may_lead(candidate):
                return candidate, True
    if electorate.election is Election.UNCLEAN:
        for candidate in replicas:
            if may_lead(candidate):
                return candidate, True
    return NO_LEADER, False


def _last_known_leader(old: PartitionImage, leader: int, isr: BrokerIds) -> BrokerIds:
    """Who led at last, and may lead again when nobody else is eligible. If the others in the ISR could not
    take over, because they were shutting down, each of them has all that was committed."""
    if leader != NO_LEADER:
        return ()
    if isr or not (old.has_leader or old.isr):
        return old.last_known_elr
    return (old.leader,) if old.has_leader else old.isr


def without(brokers: BrokerIds, removed: BrokerIds) -> BrokerIds:
    return tuple(broker for broker in brokers if broker not in removed)
