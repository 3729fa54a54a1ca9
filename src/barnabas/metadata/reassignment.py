"""Decisions about moving partitions to other brokers (KIP-455). Pure.

A reassignment has two sets: the original replicas and the target. While it runs, `replicas` has the target
first and then the original replicas that will go; the difference is in `adding_replicas` and
`removing_replicas`. The new replicas follow the leader and join the ISR. When the whole target is in the ISR,
the same change of the metadata removes the others (partition_changes.py). So a reassignment ends in one of
the two sets, whichever controllers and brokers die meanwhile. A second reassignment of the same partition
starts from the original replicas; what only the first one wanted to add is dropped at once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TOPIC_NAME_LENGTH_MAX
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.leader_rules import LeaderRules, active_brokers
from barnabas.metadata.partition_changes import BrokerIds, Election, Target, change_partition, without
from barnabas.metadata.parts import PartitionImage, TopicImage
from barnabas.metadata.records import PartitionChangeRecord

# The new replicas of a partition; None cancels its reassignment.
Move: TypeAlias = Sequence[int] | None
ReassignmentResults: TypeAlias = dict[tuple[str, int], KafkaError | None]


def original_replicas(partition: PartitionImage) -> BrokerIds:
    """The replicas before the reassignment that is in progress."""
    return without(partition.replicas, partition.adding_replicas)


def reassign_partitions(
    image: MetadataImage,
    moves: Mapping[tuple[str, int], Move],
    rules: LeaderRules,
    *,
    may_change_factor: bool = True,
) -> Decision[ReassignmentResults]:
    """One answer per partition: None, or an error."""
    results: ReassignmentResults = {}
    records: list[PartitionChangeRecord] = []
    active = active_brokers(image)
    for (name, index), move in moves.items():
        try:
            topic, partition = check_move(image, name, index, move, may_change_factor=may_change_factor)
            if move is None:
                target, election = _cancelled(image, name, index, rules), None
            else:
                target, election = _moved(partition, tuple(move)), Election.ONLINE
        except KafkaError as error:
            results[name, index] = error.as_result()
            continue
        # The only replica of a partition may be in the ISR while its broker starts (settling.py).
        target = replace(target, isr=tuple(member for member in target.isr if member in active))
        electorate = rules.electorate(image, name, active.__contains__, election)
        record = change_partition(topic.id, index, partition, target, electorate)
        records.extend([] if record is None else [record])
        results[name, index] = None
    return Decision(tuple(records), results)


def check_move(
    image: MetadataImage, name: str, index: int, move: Move, *, may_change_factor: bool = True
) -> tuple[TopicImage, PartitionImage]:
    """The topic and the partition; KafkaError if the partition cannot be moved like this."""
    short_name = name[:TOPIC_NAME_LENGTH_MAX]
    topic = image.topic(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {short_name}.")
    partition = image.partition(name, index)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {short_name}:{index}."
        )
    if move is None:
        if not partition.is_reassigning:
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    else:
        _check_replicas(image, move)
        factor = len(original_replicas(partition))
        if len(move) != factor and not may_change_factor:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor is changed from {factor} to {len(move)}",
            )
    return topic, partition


def _check_replicas(image: MetadataImage, replicas: Sequence[int]) -> None:
    prefix = "The manual partition assignment includes"
    problem = None
    if not replicas:
        problem = f"{prefix} an empty replica list."
    seen: set[int] = set()
    for replica in sorted(replicas):
        if replica not in image.brokers:
            problem = f"{prefix} broker {replica}, but no such broker is registered."
        elif replica in seen:
            problem = f"{prefix} the broker {replica} more than once."
        if problem is not None:
            break
        seen.add(replica)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def _moved(partition: PartitionImage, target: BrokerIds) -> Target:
    original = original_replicas(partition)
    adding, removing = without(target, original), without(original, target)
    replicas = target + removing
    isr = tuple(member for member in partition.isr if member in replicas)
    if partition.isr and not isr:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"only the replicas {list(partition.isr)} are in sync, which the new assignment drops; "
            "wait until others have caught up, or cancel the reassignment",
        )
    return Target(replicas, isr, adding, removing, partition.leader_recovery_state)


def _cancelled(image: MetadataImage, name: str, index: int, rules: LeaderRules) -> Target:
    partition = image.topics[name].partitions[index]
    isr = without(partition.isr, partition.adding_replicas)
    is_unclean = bool(partition.isr) and not isr
    if is_unclean and not rules.topic_config(image.topic_config(name)).unclean_leader_election_enable:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {name}:{index} because it would require an "
            "unclean leader election.",
        )
    return replace(
        Target.unchanged(partition),
        replicas=original_replicas(partition),
        isr=isr,
        adding=(),
        removing=(),
    )
