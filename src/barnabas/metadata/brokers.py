"""Decisions about brokers: register, fence, unregister, and the elections that follow. Pure.

Leader epochs. A broker that loses its session is fenced: each partition it leads goes to the next living
replica of the ISR, or has no leader; in both cases the leader epoch rises. A broker that registers becomes
the leader of partitions that have no leader and have it in their ISR; again the epoch rises. But a broker
that comes back without being fenced (the usual restart of a single broker) keeps its partitions and their
epochs: no other broker can have led them, and its log is the only one. Only after an unclean stop does it
raise all its leader epochs (`raise_leader_epochs`): a power failure may have lost records that consumers
have read, and they notice that by the epoch. Kafka fences a stopped broker, and raises the epoch at every
start."""

from collections.abc import Iterator, Mapping

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import BrokerImage, PartitionImage
from barnabas.metadata.records import (
    NO_LEADER,
    BrokerRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RemoveBrokerRecord,
)
from barnabas.metadata.store import BrokerRegistration


def register_broker(image: MetadataImage, registration: BrokerRegistration) -> Decision[int]:
    """Register a broker, new or not; the answer is its epoch."""
    old = image.brokers.get(registration.id)
    same = old is not None and old.incarnation == registration.incarnation
    epoch = old.epoch if old is not None and same else image.offset
    record = BrokerRecord(
        registration.id, epoch, registration.incarnation, registration.listeners, registration.rack
    )
    if old is not None and _as_record(old, fenced=old.fenced) == record:
        return Decision((), epoch)
    return Decision((record, *_takes_over(image, registration.id)), epoch)


def fence_broker(image: MetadataImage, broker_id: int) -> Decision[None]:
    """Move all leaderships away from a broker; it stays registered."""
    broker = _registered(image, broker_id)
    if broker.fenced:
        return Decision((), None)
    return Decision((*_leaves(image, broker_id), _as_record(broker, fenced=True)), None)


def raise_leader_epochs(image: MetadataImage, broker_id: int) -> Decision[int]:
    """A new leader epoch for every partition that the broker leads; the answer is their number."""
    records = tuple(
        PartitionChangeRecord(topic.id, index, leader=broker_id)
        for topic in image.topics.values()
        for index, partition in enumerate(topic.partitions)
        if partition.leader == broker_id
    )
    return Decision(records, len(records))


def unregister_broker(image: MetadataImage, broker_id: int) -> Decision[None]:
    broker = _registered(image, broker_id)
    return Decision((*_leaves(image, broker_id), RemoveBrokerRecord(broker_id, broker.epoch)), None)


def reconcile_sessions(image: MetadataImage, living: Mapping[int, BrokerRegistration]) -> Decision[bool]:
    """Register or fence one broker so that the image follows the sessions; False if there is nothing to do.

    Living brokers come first, so that they can lead the partitions of those that are fenced."""
    for registration in living.values():
        decision = register_broker(image, registration)
        if decision.records:
            return Decision(decision.records, True)
    for broker in image.brokers.values():
        if not broker.fenced and broker.id not in living:
            return Decision(fence_broker(image, broker.id).records, True)
    return Decision((), False)


def check_broker_epoch(image: MetadataImage, broker_id: int, epoch: int) -> None:
    """Refuse a request of an earlier start of a broker, or of a broker that is not registered."""
    current = _registered(image, broker_id).epoch
    if current != epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} has epoch {current} now, not {epoch}"
        )


def _registered(image: MetadataImage, broker_id: int) -> BrokerImage:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {broker_id} is not registered")
    return broker


def _as_record(broker: BrokerImage, *, fenced: bool) -> BrokerRecord:
    return BrokerRecord(broker.id, broker.epoch, broker.incarnation, broker.listeners, broker.rack, fenced)


def _takes_over(image: MetadataImage, broker_id: int) -> Iterator[MetadataRecord]:
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if not partition.has_leader and broker_id in partition.isr:
                yield PartitionChangeRecord(topic.id, index, leader=broker_id)


def _leaves(image: MetadataImage, broker_id: int) -> Iterator[MetadataRecord]:
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if broker_id in partition.isr:
                leader, isr = _without(image, partition, broker_id)
                if leader is not None or isr is not None:
                    yield PartitionChangeRecord(topic.id, index, leader=leader, isr=isr)


def _without(
    image: MetadataImage, partition: PartitionImage, broker_id: int
) -> tuple[int | None, tuple[int, ...] | None]:
    """The leader and ISR of a partition without the broker; None for what does not change.

    The last member stays in the ISR: only this replica is known to have every acknowledged record."""
    isr = tuple(member for member in partition.isr if member != broker_id)
    leader: int | None = None
    if partition.leader == broker_id:
        candidates = (member for member in partition.replicas if member in isr and image.alive(member))
        leader = next(candidates, NO_LEADER)
    return leader, isr or None
