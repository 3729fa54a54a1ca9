"""Decisions about brokers: register, unfence, shut down, fence, unregister. Pure.

A broker that registers is fenced: it has a session, but may not lead or be in an ISR. It recovers its logs,
catches up with the metadata, and asks by a heartbeat to be unfenced. Settling (settling.py) changes the
partitions after each of these steps.

A new incarnation of a broker leaves leadership and ISR first, even if the session of the old one was not
seen to end. If the old one stopped uncleanly, records may be lost that it had before, so it is no longer an
eligible leader (KIP-966). The exception are partitions whose only replica is on this broker: they keep leader
and leader epoch, since no other broker can have led them. After an unclean stop their leader epochs rise: a
power failure may have lost records that consumers have read, and they notice that by the epoch. Kafka fences
a stopped broker, and raises the epoch at every start.

A change of very many partitions is written in portions. An answer of None means that there is more to do:
decide again on the next image."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from itertools import islice

from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import Uuid
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.leader_rules import LeaderRules
from barnabas.metadata.parts import BrokerImage
from barnabas.metadata.records import (
    BrokerRecord,
    ControllerRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RemoveBrokerRecord,
)
from barnabas.metadata.settling import PARTITIONS_PER_CHANGE, relieve, removals, settle
from barnabas.metadata.store import BrokerRegistration


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a broker asks for; `metadata_offset` is the end of the metadata that it has applied."""

    broker_id: int
    broker_epoch: int
    metadata_offset: int
    wants_fence: bool = False
    wants_shutdown: bool = False
    offline_directories: tuple[Uuid, ...] = ()


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool = False


def announce_controller(image: MetadataImage, broker_id: int, epoch: int) -> Decision[None]:
    """Write who is the controller, unless the image says so already."""
    if image.controller_id == broker_id:
        return Decision((), None)
    return Decision((ControllerRecord(broker_id, epoch),), None)


def register_broker(
    image: MetadataImage, registration: BrokerRegistration, rules: LeaderRules
) -> Decision[int | None]:
    """Register a broker, new or not; the answer is its epoch."""
    old = image.brokers.get(registration.id)
    if old is not None and old.incarnation == registration.incarnation:
        return _update_registration(old, registration)
    record = BrokerRecord(
        registration.id,
        image.offset,
        registration.incarnation,
        registration.listeners,
        registration.rack,
        fenced=True,
    )
    if old is None:
        return Decision((record,), image.offset)
    is_unclean = not _was_clean(image, registration)
    changes = removals(image, old.id, rules, is_unclean=is_unclean)
    portion = tuple(islice(changes, PARTITIONS_PER_CHANGE))
    if len(portion) == PARTITIONS_PER_CHANGE:
        # Fence the old incarnation first: it must not be elected while the rest is changed.
        fence = () if old.fenced else (_as_record(old, fenced=True),)
        return Decision((*fence, *portion), None)
    raised = _raised_epochs(image, old.id) if is_unclean else ()
    return Decision((record, *portion, *raised), image.offset)


def _update_registration(old: BrokerImage, registration: BrokerRegistration) -> Decision[int | None]:
    current = replace(old, listeners=registration.listeners, rack=registration.rack)
    records = () if current == old else (_as_record(current),)
    return Decision(records, old.epoch)


def _raised_epochs(image: MetadataImage, broker_id: int) -> tuple[PartitionChangeRecord, ...]:
    """A new leader epoch for every partition that the broker leads as its only replica."""
    return tuple(
        PartitionChangeRecord(topic.id, index, leader=broker_id)
        for topic in image.topics.values()
        for index, partition in enumerate(topic.partitions)
        if partition.leader == broker_id and partition.replicas == (broker_id,)
    )


def heartbeat(
    image: MetadataImage, beat: Heartbeat, rules: LeaderRules, with_session: Set[int] = frozenset()
) -> Decision[HeartbeatAnswer]:
    """Unfence, fence or shut down a broker as it asks. The partitions follow, at least a first portion.

    A broker in controlled shutdown gives up its leaderships first, some with each heartbeat. It is told to
    stop by the heartbeat after that, so that the other brokers can learn who leads now."""
    check_broker_epoch(image, beat.broker_id, beat.broker_epoch)
    broker = image.brokers[beat.broker_id]
    is_caught_up = beat.metadata_offset >= broker.epoch
    new = replace(broker, offline_directories=beat.offline_directories)
    should_shut_down = False
    if beat.wants_shutdown and (broker.fenced or beat.wants_fence or not _is_needed(image, broker.id)):
        new = replace(new, fenced=True)
        should_shut_down = True
    elif beat.wants_shutdown:
        new = replace(new, in_controlled_shutdown=True)
    elif beat.wants_fence:
        new = replace(new, fenced=True)
    elif broker.fenced and is_caught_up:
        new = replace(new, fenced=False, in_controlled_shutdown=False)
    answer = HeartbeatAnswer(is_caught_up, new.fenced, should_shut_down)
    records = () if new == broker else (_as_record(new),)
    if new.in_controlled_shutdown and not new.fenced:
        return Decision((*records, *relieve(image.apply(records), broker.id, rules)), answer)
    if not records:
        return Decision((), answer)
    return Decision(_and_settled(image, records, rules, with_session), answer)


def fence_brokers(
    image: MetadataImage, broker_ids: Set[int], rules: LeaderRules, with_session: Set[int] = frozenset()
) -> Decision[None]:
    """Move all leaderships away from brokers, at least a first portion; they stay registered."""
    fenced = tuple(
        _as_record(broker, fenced=True)
        for broker in (_registered(image, broker_id) for broker_id in sorted(broker_ids))
        if not broker.fenced
    )
    return Decision(_and_settled(image, fenced, rules, with_session) if fenced else (), None)


def unregister_broker(image: MetadataImage, broker_id: int, rules: LeaderRules) -> Decision[bool | None]:
    broker = _registered(image, broker_id)
    changes = removals(image, broker_id, rules, is_unclean=True)
    portion = tuple(islice(changes, PARTITIONS_PER_CHANGE))
    if len(portion) == PARTITIONS_PER_CHANGE:
        return Decision(portion, None)
    return Decision((*portion, RemoveBrokerRecord(broker_id, broker.epoch)), True)


def reconcile_sessions(
    image: MetadataImage, living: Mapping[int, BrokerRegistration], rules: LeaderRules
) -> Decision[bool]:
    """One step that makes the image follow the sessions; False if there is nothing to do.

    The last one in an ISR is the one that may lead later. So brokers that come back from an unclean stop
    leave first, then those that are gone (all at once), then those that come back from a clean stop. The last
    steps settle what is left, such as the unfinished work of an earlier controller."""
    clean = [registration for registration in living.values() if _was_clean(image, registration)]
    records: tuple[MetadataRecord, ...] = ()
    for registration in living.values():
        if not records and registration not in clean:
            records = register_broker(image, registration, rules).records
    gone = {broker.id for broker in image.brokers.values() if not broker.fenced} - living.keys()
    if not records and gone:
        records = fence_brokers(image, gone, rules, living.keys()).records
    for registration in clean:
        records = records or register_broker(image, registration, rules).records
    records = records or settle(image, rules, living.keys()).records
    return Decision(records, bool(records))


def _was_clean(image: MetadataImage, registration: BrokerRegistration) -> bool:
    """Whether the broker is registered with this start, or with an earlier one that ended cleanly."""
    old = image.brokers.get(registration.id)
    return old is not None and (
        old.incarnation == registration.incarnation or old.epoch == registration.previous_epoch
    )


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


def _is_needed(image: MetadataImage, broker_id: int) -> bool:
    """Whether a broker leads a partition, or is one of several in an ISR."""
    return any(
        partition.leader == broker_id or (broker_id in partition.isr and len(partition.isr) > 1)
        for topic in image.topics.values()
        for partition in topic.partitions
    )


def _and_settled(
    image: MetadataImage,
    records: tuple[MetadataRecord, ...],
    rules: LeaderRules,
    with_session: Set[int],
) -> tuple[MetadataRecord, ...]:
    """The records, and a first portion of the changes to partitions that follow from them."""
    return (*records, *settle(image.apply(records), rules, with_session).records)


def _as_record(broker: BrokerImage, *, fenced: bool | None = None) -> BrokerRecord:
    return BrokerRecord(
        broker.id,
        broker.epoch,
        broker.incarnation,
        broker.listeners,
        broker.rack,
        broker.fenced if fenced is None else fenced,
        broker.in_controlled_shutdown,
        broker.offline_directories,
    )
