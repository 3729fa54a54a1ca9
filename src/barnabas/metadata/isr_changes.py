"""The decision about ISRs that leaders propose (AlterPartition). Pure.

A proposal counts only under the leader epoch and partition epoch that the leader knows, so that one from
before an election or another change is refused. A member must be active, with the broker epoch that the
leader has seen in its fetches (KIP-903): after a restart it must catch up again first. A proposal may
complete a reassignment; if another broker leads then, the proposal is accepted, and the answer is
NEW_LEADER_ELECTED.

A replica whose log directory has failed takes itself out of the ISR, whether it leads or not (Kafka has the
directories of all replicas in the metadata for that). If it leads, another member of the ISR is elected."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from barnabas.errors import ErrorCode
from barnabas.ids import Uuid
from barnabas.metadata.brokers import check_broker_epoch
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.leader_rules import LeaderRules, active_brokers
from barnabas.metadata.partition_changes import Target, change_partition, merged
from barnabas.metadata.parts import PartitionImage
from barnabas.metadata.records import RECOVERED, RECOVERING, PartitionChangeRecord

ANY_EPOCH = -1


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """The ISR that a leader proposes: broker ids with their broker epochs, or ANY_EPOCH."""

    topic_id: Uuid
    index: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    leader_recovery_state: int = RECOVERED


Results: TypeAlias = list[PartitionImage | ErrorCode]


def alter_partitions(
    image: MetadataImage,
    broker_id: int,
    broker_epoch: int,
    proposals: Sequence[IsrProposal],
    rules: LeaderRules,
) -> Decision[Results]:
    """One answer per proposal, in order: the partition as it is then, or an error."""
    check_broker_epoch(image, broker_id, broker_epoch)
    active = active_brokers(image)
    results: Results = []
    records: list[PartitionChangeRecord] = []
    changed: set[tuple[Uuid, int]] = set()
    for proposal in proposals:
        partition = _partition(image, proposal)
        if isinstance(partition, PartitionImage) and (proposal.topic_id, proposal.index) in changed:
            partition = ErrorCode.INVALID_UPDATE_VERSION
        if isinstance(partition, PartitionImage):
            error = _refusal(image, broker_id, partition, proposal)
            partition = partition if error is None else error
        if not isinstance(partition, PartitionImage):
            results.append(partition)
            continue
        target = replace(
            Target.unchanged(partition),
            isr=tuple(member for member, _ in proposal.isr),
            leader_recovery_state=proposal.leader_recovery_state,
            # A replica that leaves by itself has lost its log, so it must not be elected later either.
            unclean=frozenset({broker_id}) if _leaves(broker_id, partition, proposal) else frozenset(),
        )
        electorate = rules.electorate(image, image.topic_names[proposal.topic_id], active.__contains__)
        record = change_partition(proposal.topic_id, proposal.index, partition, target, electorate)
        if record is not None:
            records.append(record)
            changed.add((proposal.topic_id, proposal.index))
            partition = merged(partition, record)
        results.append(partition if partition.leader == broker_id else ErrorCode.NEW_LEADER_ELECTED)
    return Decision(tuple(records), results)


def _partition(image: MetadataImage, proposal: IsrProposal) -> PartitionImage | ErrorCode:
    topic = image.topic_by_id(proposal.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not 0 <= proposal.index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return topic.partitions[proposal.index]


def _leaves(broker_id: int, partition: PartitionImage, proposal: IsrProposal) -> bool:
    """Whether the proposal is the ISR without the sender, and somebody is left."""
    members = tuple(member for member, _ in proposal.isr)
    rest = tuple(member for member in partition.isr if member != broker_id)
    return broker_id in partition.isr and members == rest != ()


def _refusal(
    image: MetadataImage, broker_id: int, partition: PartitionImage, proposal: IsrProposal
) -> ErrorCode | None:
    if _leaves(broker_id, partition, proposal):
        return _epoch_refusal(partition.leader, partition, proposal)
    return (
        _epoch_refusal(broker_id, partition, proposal)
        or _isr_refusal(broker_id, partition, proposal)
        or _member_refusal(image, proposal)
    )


def _epoch_refusal(broker_id: int, partition: PartitionImage, proposal: IsrProposal) -> ErrorCode | None:
    """Epochs that are newer than this image's mean that there is a newer controller."""
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    return None


def _isr_refusal(broker_id: int, partition: PartitionImage, proposal: IsrProposal) -> ErrorCode | None:
    members = [member for member, _ in proposal.isr]
    is_valid = (
        len(set(members)) == len(members)
        and set(partition.replicas).issuperset(members)
        and broker_id in members
        and proposal.leader_recovery_state in (RECOVERED, RECOVERING)
    )
    if not is_valid:
        return ErrorCode.INVALID_REQUEST
    if proposal.leader_recovery_state == RECOVERING and (
        len(members) > 1 or partition.leader_recovery_state == RECOVERED
    ):
        return ErrorCode.INVALID_REQUEST
    return None


def _member_refusal(image: MetadataImage, proposal: IsrProposal) -> ErrorCode | None:
    for member, epoch in proposal.isr:
        broker = image.brokers.get(member)
        if broker is None or not broker.is_active or epoch not in (ANY_EPOCH, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return None
