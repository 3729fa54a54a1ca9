"""Replica assignments: checks those that a user gives, and makes partitions from an assignment. Pure."""

from collections.abc import Iterator, Sequence

from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import Uuid
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import PartitionRecord


def check_assignments(
    image: MetadataImage, assignments: Sequence[tuple[int, ...]], replication_factor: int
) -> None:
    """Raise INVALID_REPLICA_ASSIGNMENT unless every partition can be created with these replicas."""
    for replicas in assignments:
        problem = _problem(image, replicas, replication_factor)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def _problem(image: MetadataImage, replicas: tuple[int, ...], replication_factor: int) -> str | None:
    if not replicas:
        return "a partition needs at least one replica"
    if len(set(replicas)) != len(replicas):
        return f"the replica list {list(replicas)} has a broker more than once"
    unknown = [broker for broker in replicas if broker not in image.brokers]
    if unknown:
        return f"the replica list {list(replicas)} has broker {unknown[0]}, which is not registered"
    if len(replicas) != replication_factor:
        return (
            f"the replica list {list(replicas)} has {len(replicas)} brokers; "
            f"it must have {replication_factor}, like the other partitions"
        )
    if not any(image.active(broker) for broker in replicas):
        return f"none of the brokers {list(replicas)} is alive, so the partition would have no leader"
    return None


def partition_records(
    image: MetadataImage, topic_id: Uuid, first: int, assignments: Sequence[tuple[int, ...]]
) -> Iterator[PartitionRecord]:
    """New partitions: the replicas on living brokers are in sync, and the first of them leads."""
    for index, replicas in enumerate(assignments, first):
        isr = tuple(broker for broker in replicas if image.active(broker))
        yield PartitionRecord(topic_id, index, replicas, isr, isr[0])
