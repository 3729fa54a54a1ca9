"""Decisions about brokers: register, fence, unregister, and the elections that follow from them. Pure.

Leader epochs. A broker that loses its session is fenced: each partition it leads goes to the next living
replica of the ISR, or to nobody, and either way the leader epoch rises. A broker that registers takes the
partitions that have no leader and count it in their ISR, and again the epoch rises. But a broker that comes
back without having been fenced in between (the usual restart of a single broker) keeps its partitions and
their epochs: nobody else can have led, and its log is the only one there is. Only if it did not stop in order
does it begin new terms (`begin_terms`): a power failure may have cost it records that consumers have read,
and the epoch is how they see it. Kafka fences a stopped broker, and raises the epoch at every start."""

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
    """Register, or bring back, a broker; the answer is its epoch."""
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
    """Take a broker's leaderships away; it stays registered."""
    broker = _registered(image, broker_id)
    if broker.fenced:
        return Decision((), None)
    return Decision((*_leaves(image, broker_id), _as_record(broker, fenced=True)), None)


def begin_terms(image: MetadataImage, broker_id: int) -> Decision[int]:
    """A new term, and so a new epoch, for every partition the broker leads; how many there are."""
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
    """Bring the image one broker closer to the sessions; the answer is whether there was anything to do.

    The living come first, so that there is somebody to lead what the dead leave behind."""
    for registration in living.values():
        decision = register_broker(image, registration)
        if decision.records:
            return Decision(decision.records, True)
    for broker in image.brokers.values():
        if not broker.fenced and broker.id not in living:
            return Decision(fence_broker(image, broker.id).records, True)
    return Decision((), False)


def check_broker_epoch(image: MetadataImage, broker_id: int, epoch: int) -> None:
    """Refuse a request of a former life of a broker, or of a broker nobody knows."""
    if _registered(image, broker_id).epoch != epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"epoch {epoch} of broker {broker_id} is not its current one"
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
    """New leader and ISR, None where there is no change, once the broker is out.

    The last member stays in the ISR: it alone is known to have every acknowledged record."""
    isr = tuple(member for member in partition.isr if member != broker_id)
    leader: int | None = None
    if partition.leader == broker_id:
        candidates = (member for member in partition.replicas if member in isr and image.alive(member))
        leader = next(candidates, NO_LEADER)
    return leader, isr or None
