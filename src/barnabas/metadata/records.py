"""Metadata records: every change to the cluster is one of these, and nothing else changes the image.

A record is written as a JSON object with its `type` and the `version` of its fields. A reader refuses an
unknown type or version: if it were skipped, brokers would have different images of the same log. Every change
of the fields raises the version; a new field has a default, so that older records can be read. Pure values:
no I/O."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from barnabas.ids import Uuid, uuid_from_string, uuid_to_string

NO_LEADER = -1


class UnknownRecord(ValueError):
    """The log has a record that this version of Barnabas cannot read."""


@dataclass(frozen=True, slots=True)
class Listener:
    """An address of a broker; `protocol` is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""

    name: str
    host: str
    port: int
    protocol: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class TopicRecord:
    name: str
    id: Uuid


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """A whole partition. The partitions of a topic are in the order of their index."""

    topic_id: Uuid
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[Uuid, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionChangeRecord:
    """New values of a partition; a field that is None does not change.

    Every change raises the partition epoch by one. A leader, even the same one, raises the leader epoch by
    one: it is a new leadership."""

    topic_id: Uuid
    partition: int
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class RemoveTopicRecord:
    """Removes the topic, its partitions and its configs."""

    topic_id: Uuid


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """One config of one resource; the value None removes it. Resource types have Kafka's numbers."""

    resource_type: int
    resource_name: str
    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class BrokerRecord:
    """A broker's registration, replacing any earlier one of the same id.

    `epoch` is the offset of the record that registered this incarnation, so it rises with each start."""

    id: int
    epoch: int
    incarnation: Uuid
    listeners: tuple[Listener, ...]
    rack: str | None = None
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class RemoveBrokerRecord:
    id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ProducerIdsRecord:
    """All producer ids below `next_producer_id` are used and are never given out again."""

    broker_id: int
    broker_epoch: int
    next_producer_id: int


@dataclass(frozen=True, slots=True)
class FeatureRecord:
    """The finalized level of a feature; level 0 removes it."""

    name: str
    level: int


MetadataRecord: TypeAlias = (
    TopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | ConfigRecord
    | BrokerRecord
    | RemoveBrokerRecord
    | ProducerIdsRecord
    | FeatureRecord
)
Fields: TypeAlias = dict[str, Any]


def _topic(fields: Fields) -> MetadataRecord:
    return TopicRecord(fields["name"], uuid_from_string(fields["id"]))


def _partition(fields: Fields) -> MetadataRecord:
    return PartitionRecord(
        uuid_from_string(fields["topic_id"]),
        fields["partition"],
        tuple(fields["replicas"]),
        tuple(fields["isr"]),
        fields["leader"],
        fields["leader_epoch"],
        fields["partition_epoch"],
        tuple(map(uuid_from_string, fields.get("directories", ()))),
    )


def _partition_change(fields: Fields) -> MetadataRecord:
    isr, replicas = fields.get("isr"), fields.get("replicas")
    return PartitionChangeRecord(
        uuid_from_string(fields["topic_id"]),
        fields["partition"],
        fields.get("leader"),
        None if isr is None else tuple(isr),
        None if replicas is None else tuple(replicas),
    )


def _remove_topic(fields: Fields) -> MetadataRecord:
    return RemoveTopicRecord(uuid_from_string(fields["topic_id"]))


def _config(fields: Fields) -> MetadataRecord:
    return ConfigRecord(fields["resource_type"], fields["resource_name"], fields["key"], fields.get("value"))


def _broker(fields: Fields) -> MetadataRecord:
    listeners = tuple(Listener(*listener) for listener in fields["listeners"])
    incarnation = uuid_from_string(fields["incarnation"])
    rack, fenced = fields.get("rack"), fields.get("fenced", False)
    return BrokerRecord(fields["id"], fields["epoch"], incarnation, listeners, rack, fenced)


def _remove_broker(fields: Fields) -> MetadataRecord:
    return RemoveBrokerRecord(fields["id"], fields["epoch"])


def _producer_ids(fields: Fields) -> MetadataRecord:
    return ProducerIdsRecord(fields["broker_id"], fields["broker_epoch"], fields["next_producer_id"])


def _feature(fields: Fields) -> MetadataRecord:
    return FeatureRecord(fields["name"], fields["level"])


@dataclass(frozen=True, slots=True)
class _Shape:
    type: str
    version: int
    decode: Callable[[Fields], MetadataRecord]


# One row per record. The type and the version are part of the format on disk.
_SHAPES: dict[type[MetadataRecord], _Shape] = {
    TopicRecord: _Shape("topic", 0, _topic),
    PartitionRecord: _Shape("partition", 0, _partition),
    PartitionChangeRecord: _Shape("partition-change", 0, _partition_change),
    RemoveTopicRecord: _Shape("remove-topic", 0, _remove_topic),
    ConfigRecord: _Shape("config", 0, _config),
    BrokerRecord: _Shape("broker", 0, _broker),
    RemoveBrokerRecord: _Shape("remove-broker", 0, _remove_broker),
    ProducerIdsRecord: _Shape("producer-ids", 0, _producer_ids),
    FeatureRecord: _Shape("feature", 0, _feature),
}
_SHAPES_BY_TYPE = {shape.type: shape for shape in _SHAPES.values()}


def _json_value(value: object) -> object:
    if isinstance(value, bytes):
        return uuid_to_string(value)
    if isinstance(value, Listener):
        return [value.name, value.host, value.port, value.protocol]
    if isinstance(value, tuple):
        return [_json_value(item) for item in value]
    return value


def record_to_json(record: MetadataRecord) -> Fields:
    """The record as an object for JSON; a field that is None is left out."""
    shape = _SHAPES[type(record)]
    fields: Fields = {"type": shape.type, "version": shape.version}
    for name in record.__slots__:
        value = getattr(record, name)
        if value is not None:
            fields[name] = _json_value(value)
    return fields


def record_from_json(fields: Mapping[str, Any]) -> MetadataRecord:
    shape = _SHAPES_BY_TYPE.get(fields.get("type", ""))
    if shape is None:
        raise UnknownRecord(
            f"the metadata log has a record of unknown type {fields.get('type')!r}; "
            "it was written by a newer version of Barnabas"
        )
    version = fields.get("version")
    if not isinstance(version, int) or not 0 <= version <= shape.version:
        raise UnknownRecord(
            f"the metadata log has a {shape.type} record of version {version!r}; "
            f"this version of Barnabas reads versions up to {shape.version}"
        )
    return shape.decode(dict(fields) if not isinstance(fields, dict) else fields)


def records_to_json(records: Iterable[MetadataRecord]) -> list[Fields]:
    return [record_to_json(record) for record in records]


def records_from_json(items: Iterable[Mapping[str, Any]]) -> tuple[MetadataRecord, ...]:
    return tuple([record_from_json(item) for item in items])
