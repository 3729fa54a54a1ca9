"""Applies records to an image: the only code that gives a metadata record its meaning.

An ImageBuilder starts from one image, applies records in the order of the log, and returns the next image and
the difference. It copies a dictionary when a record first changes it, and keeps the partitions of a changed
topic in a list. So the time to load a log grows linearly with its records."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas.ids import Uuid, uuid_to_string
from barnabas.metadata.acls import acl_of
from barnabas.metadata.difference import Difference, compare_touched
from barnabas.metadata.partition_changes import merged
from barnabas.metadata.parts import (
    TOPIC_RESOURCE,
    BrokerImage,
    ConfigResource,
    PartitionImage,
    TopicImage,
    collision_key,
)
from barnabas.metadata.records import (
    AclRecord,
    BrokerRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ControllerRecord,
    DelegationTokenRecord,
    FeatureRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAclRecord,
    RemoveBrokerRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    ScramCredentialRecord,
    TopicRecord,
)

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage


class InconsistentLog(ValueError):
    """A record cannot be applied to the image before it; no controller has written such a log."""


class ImageBuilder:
    def __init__(self, image: "MetadataImage") -> None:
        self._image = image
        self._count = 0
        self._changed: dict[str, Any] = {}
        self._partitions: dict[str, list[PartitionImage]] = {}
        self._touched_topics: set[str] = set()
        self._touched_configs: set[ConfigResource] = set()
        self._touched_brokers: set[int] = set()

    def apply(self, record: MetadataRecord) -> None:
        _APPLY[type(record)](self, record)
        self._count += 1

    def finish(self) -> "tuple[MetadataImage, Difference]":
        if self._partitions:
            topics = self._own("topics")
            for name, partitions in self._partitions.items():
                old = topics[name]
                topics[name] = TopicImage(old.name, old.id, tuple(partitions))
        new = replace(self._image, offset=self._image.offset + self._count, **self._changed)
        difference = compare_touched(
            self._image, new, self._touched_topics, self._touched_configs, self._touched_brokers
        )
        return new, difference

    def _own(self, name: str) -> dict[Any, Any]:
        """The dictionary `name` of the new image; on first use a copy of the old image's."""
        owned = self._changed.get(name)
        if owned is None:
            owned = self._changed[name] = dict(getattr(self._image, name))
        return owned

    def _topic_name(self, topic_id: Uuid) -> str:
        names = self._changed.get("topic_names", self._image.topic_names)
        name: str | None = names.get(topic_id)
        if name is None:
            raise InconsistentLog(
                f"metadata record {self._image.offset + self._count} is about topic "
                f"{uuid_to_string(topic_id)}, which does not exist at that point"
            )
        return name

    def _partitions_of(self, name: str) -> list[PartitionImage]:
        partitions = self._partitions.get(name)
        if partitions is None:
            topics = self._changed.get("topics", self._image.topics)
            partitions = self._partitions[name] = list(topics[name].partitions)
            self._touched_topics.add(name)
        return partitions

    def _apply_topic(self, record: TopicRecord) -> None:
        topics = self._own("topics")
        if record.name in topics:
            raise InconsistentLog(
                f"metadata record {self._image.offset + self._count} creates topic {record.name!r}, "
                "which exists at that point"
            )
        topics[record.name] = TopicImage(record.name, record.id)
        self._own("topic_names")[record.id] = record.name
        self._touched_topics.add(record.name)
        key = collision_key(record.name)
        if key is not None:
            self._own("collisions")[key] = record.name

    def _apply_partition(self, record: PartitionRecord) -> None:
        partitions = self._partitions_of(self._topic_name(record.topic_id))
        image = PartitionImage(
            record.replicas,
            # Most partitions have all replicas in sync: one tuple is enough for both.
            record.replicas if record.isr == record.replicas else record.isr,
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            record.directories,
            record.adding_replicas,
            record.removing_replicas,
            record.elr,
            record.last_known_elr,
            record.leader_recovery_state,
        )
        if record.partition == len(partitions):
            partitions.append(image)
        elif 0 <= record.partition < len(partitions):
            partitions[record.partition] = image
        else:
            raise self._no_partition(record)

    def _apply_partition_change(self, record: PartitionChangeRecord) -> None:
        partitions = self._partitions_of(self._topic_name(record.topic_id))
        if not 0 <= record.partition < len(partitions):
            raise self._no_partition(record)
        old = partitions[record.partition]
        partitions[record.partition] = merged(old, record)

    def _no_partition(self, record: PartitionRecord | PartitionChangeRecord) -> InconsistentLog:
        name = self._topic_name(record.topic_id)
        return InconsistentLog(
            f"metadata record {self._image.offset + self._count} is about partition {record.partition} "
            f"of topic {name!r}, which has {len(self._partitions_of(name))}"
        )

    def _apply_remove_topic(self, record: RemoveTopicRecord) -> None:
        name = self._topic_name(record.topic_id)
        del self._own("topics")[name]
        del self._own("topic_names")[record.topic_id]
        self._partitions.pop(name, None)
        self._touched_topics.add(name)
        key = collision_key(name)
        if key is not None:
            self._own("collisions").pop(key, None)
        resource = (TOPIC_RESOURCE, name)
        if resource in self._changed.get("configs", self._image.configs):
            del self._own("configs")[resource]
            self._touched_configs.add(resource)

    def _apply_config(self, record: ConfigRecord) -> None:
        resource = (record.resource_type, record.resource_name)
        configs = self._own("configs")
        values = dict(configs.get(resource, {}))
        if record.value is None:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if values:
            configs[resource] = values
        else:
            configs.pop(resource, None)
        self._touched_configs.add(resource)

    def _apply_broker(self, record: BrokerRecord) -> None:
        self._own("brokers")[record.id] = BrokerImage(
            record.id,
            record.epoch,
            record.incarnation,
            record.listeners,
            record.rack,
            record.fenced,
            record.in_controlled_shutdown,
            record.offline_directories,
        )
        self._touched_brokers.add(record.id)

    def _apply_remove_broker(self, record: RemoveBrokerRecord) -> None:
        self._own("brokers").pop(record.id, None)
        self._touched_brokers.add(record.id)

    def _apply_producer_ids(self, record: ProducerIdsRecord) -> None:
        self._changed["next_producer_id"] = record.next_producer_id

    def _apply_feature(self, record: FeatureRecord) -> None:
        if record.level:
            self._own("features")[record.name] = record.level
        else:
            self._own("features").pop(record.name, None)

    def _apply_controller(self, record: ControllerRecord) -> None:
        self._changed["controller_id"] = record.id
        self._changed["controller_epoch"] = record.epoch

    def _apply_acl(self, record: AclRecord) -> None:
        self._own("acls")[record.id] = acl_of(record)

    def _apply_remove_acl(self, record: RemoveAclRecord) -> None:
        self._own("acls").pop(record.id, None)

    def _apply_client_quota(self, record: ClientQuotaRecord) -> None:
        quotas = self._own("client_quotas")
        values = dict(quotas.get(record.entity, {}))
        if record.value is None:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if values:
            quotas[record.entity] = values
        else:
            quotas.pop(record.entity, None)

    def _apply_scram_credential(self, record: ScramCredentialRecord) -> None:
        key = (record.user, record.mechanism)
        if record.credential is None:
            self._own("scram_credentials").pop(key, None)
        else:
            self._own("scram_credentials")[key] = record.credential

    def _apply_delegation_token(self, record: DelegationTokenRecord) -> None:
        self._own("delegation_tokens")[record.id] = record

    def _apply_remove_delegation_token(self, record: RemoveDelegationTokenRecord) -> None:
        self._own("delegation_tokens").pop(record.id, None)


_APPLY: dict[type[MetadataRecord], Callable[[ImageBuilder, Any], None]] = {
    TopicRecord: ImageBuilder._apply_topic,
    PartitionRecord: ImageBuilder._apply_partition,
    PartitionChangeRecord: ImageBuilder._apply_partition_change,
    RemoveTopicRecord: ImageBuilder._apply_remove_topic,
    ConfigRecord: ImageBuilder._apply_config,
    BrokerRecord: ImageBuilder._apply_broker,
    RemoveBrokerRecord: ImageBuilder._apply_remove_broker,
    ProducerIdsRecord: ImageBuilder._apply_producer_ids,
    FeatureRecord: ImageBuilder._apply_feature,
    ControllerRecord: ImageBuilder._apply_controller,
    AclRecord: ImageBuilder._apply_acl,
    RemoveAclRecord: ImageBuilder._apply_remove_acl,
    ClientQuotaRecord: ImageBuilder._apply_client_quota,
    ScramCredentialRecord: ImageBuilder._apply_scram_credential,
    DelegationTokenRecord: ImageBuilder._apply_delegation_token,
    RemoveDelegationTokenRecord: ImageBuilder._apply_remove_delegation_token,
}
