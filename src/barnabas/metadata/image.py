"""The metadata image: the state of the cluster after a given number of records. Immutable.

An image never changes: `apply` makes a new one, which shares every part that the records do not change. A
changed dictionary is copied once per `apply` (not per record), which takes about 0.1 ms for 10,000 topics.
All look-ups are one or two dictionary reads. Pure values: no I/O, no clock, no asyncio."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from barnabas.ids import Uuid
from barnabas.metadata.acls import acl_record
from barnabas.metadata.difference import Difference, compare
from barnabas.metadata.image_builder import ImageBuilder
from barnabas.metadata.parts import TOPIC_RESOURCE, BrokerImage, ConfigResource, PartitionImage, TopicImage
from barnabas.metadata.records import (
    NO_CONTROLLER,
    BrokerRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ControllerRecord,
    DelegationTokenRecord,
    FeatureRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    ScramCredentialRecord,
    TopicRecord,
)
from barnabas.security.acls import Acl
from barnabas.security.quotas import Entity, QuotaValues

_NO_CONFIGS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """`offset` is the number of records that were applied, which is the offset of the next one."""

    cluster_id: str = ""
    offset: int = 0
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names: Mapping[Uuid, str] = field(default_factory=dict)
    collisions: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    next_producer_id: int = 0
    controller_id: int = NO_CONTROLLER
    controller_epoch: int = -1
    acls: Mapping[Uuid, Acl] = field(default_factory=dict)
    client_quotas: Mapping[Entity, QuotaValues] = field(default_factory=dict)
    # By user and mechanism; see scram.py.
    scram_credentials: Mapping[tuple[str, int], str] = field(default_factory=dict, repr=False)
    delegation_tokens: Mapping[str, DelegationTokenRecord] = field(default_factory=dict)

    def topic(self, name: str) -> TopicImage | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: Uuid) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def partition(self, name: str, index: int) -> PartitionImage | None:
        topic = self.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        return topic.partitions[index]

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The overrides of a resource; empty if there are none."""
        return self.configs.get((resource_type, name), _NO_CONFIGS)

    def topic_config(self, name: str) -> Mapping[str, str]:
        return self.config(TOPIC_RESOURCE, name)

    def alive(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def active(self, broker_id: int) -> bool:
        """Whether the broker is alive and does not shut down: it may lead, and be in an ISR."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def apply(self, records: Iterable[MetadataRecord]) -> "MetadataImage":
        """The image after these records, the next ones of the log."""
        return self.apply_and_compare(records)[0]

    def apply_and_compare(self, records: Iterable[MetadataRecord]) -> tuple["MetadataImage", Difference]:
        """Like `apply`, and also the difference, found from what was changed without comparing everything."""
        builder = ImageBuilder(self)
        for record in records:
            builder.apply(record)
        return builder.finish()

    def difference(self, older: "MetadataImage") -> Difference:
        """Everything that differs from an older image."""
        return compare(older, self)

    def records(self) -> Iterator[MetadataRecord]:
        """The records that build this image from an empty one: the content of a snapshot."""
        if self.controller_id != NO_CONTROLLER:
            yield ControllerRecord(self.controller_id, self.controller_epoch)
        for feature, level in self.features.items():
            yield FeatureRecord(feature, level)
        for broker in self.brokers.values():
            yield BrokerRecord(
                broker.id,
                broker.epoch,
                broker.incarnation,
                broker.listeners,
                broker.rack,
                broker.fenced,
                broker.in_controlled_shutdown,
                broker.offline_directories,
            )
        for topic in self.topics.values():
            yield TopicRecord(topic.name, topic.id)
            for index, partition in enumerate(topic.partitions):
                yield _partition_record(topic.id, index, partition)
        for (resource_type, name), configs in self.configs.items():
            for key, value in configs.items():
                yield ConfigRecord(resource_type, name, key, value)
        yield from _security_records(self)
        if self.next_producer_id:
            yield ProducerIdsRecord(-1, -1, self.next_producer_id)


def _security_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    for acl_id, acl in image.acls.items():
        yield acl_record(acl_id, acl)
    for (user, mechanism), credential in image.scram_credentials.items():
        yield ScramCredentialRecord(user, mechanism, credential)
    yield from image.delegation_tokens.values()
    for entity, values in image.client_quotas.items():
        for key, value in values.items():
            yield ClientQuotaRecord(entity, key, value)


def _partition_record(topic_id: Uuid, index: int, partition: PartitionImage) -> PartitionRecord:
    return PartitionRecord(
        topic_id,
        index,
        partition.replicas,
        partition.isr,
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        partition.directories,
        partition.adding_replicas,
        partition.removing_replicas,
        partition.elr,
        partition.last_known_elr,
        partition.leader_recovery_state,
    )
