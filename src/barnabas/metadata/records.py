"""Metadata records: every change to the cluster is one of these, and nothing else changes the image.

A record is written as a JSON object with its `type` and the `version` of its fields. A reader refuses an
unknown type or version: if it were skipped, brokers would have different images of the same log. Every change
of the fields raises the version; a new field has a default, so that older records can be read. A field that
has its default value is not written. Pure values: no I/O."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from dataclasses import fields as fields_of
from typing import Any, TypeAlias

from barnabas.ids import Uuid, uuid_from_string, uuid_to_string
from barnabas.security.quotas import Entity

NO_LEADER = -1
NO_CONTROLLER = -1

# Kafka's numbers of a leader's recovery state. RECOVERING: elected unclean, its log may lack records.
RECOVERED = 0
RECOVERING = 1


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
    """A whole partition. The partitions of a topic are in the order of their index.

    `adding_replicas` and `removing_replicas` are not empty during a reassignment; `replicas` has both. `elr`
    has the eligible leader replicas (KIP-966): out of the ISR, but with every committed record.
    `last_known_elr` has the last leader of a partition whose ISR and ELR are empty."""

    topic_id: Uuid
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[Uuid, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = RECOVERED


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
    adding_replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    leader_recovery_state: int | None = None
    directories: tuple[Uuid, ...] | None = None


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

    `epoch` is the offset of the record that registered this incarnation, so it rises with each start. A
    broker in controlled shutdown gets no new leaderships. `offline_directories` are the ids of its log
    directories that have failed."""

    id: int
    epoch: int
    incarnation: Uuid
    listeners: tuple[Listener, ...]
    rack: str | None = None
    fenced: bool = False
    in_controlled_shutdown: bool = False
    offline_directories: tuple[Uuid, ...] = ()


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


@dataclass(frozen=True, slots=True)
class ControllerRecord:
    """The broker that is the controller, with the epoch of its leadership."""

    id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class AclRecord:
    """An access control list entry. The numbers are Kafka's (security/acls.py)."""

    id: Uuid
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


@dataclass(frozen=True, slots=True)
class RemoveAclRecord:
    id: Uuid


@dataclass(frozen=True, slots=True)
class ClientQuotaRecord:
    """One quota of an entity; the value None removes it."""

    entity: Entity
    key: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class ScramCredentialRecord:
    """The credential of a user for one mechanism, which has Kafka's number; None removes it. scram.py writes
    and reads the text, which is a secret."""

    user: str
    mechanism: int
    credential: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class DelegationTokenRecord:
    """A whole token; principals are written as User:alice. It is valid until `expires_ms`, which can be moved
    up to `ends_ms`. The times are Unix milliseconds."""

    id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    ends_ms: int
    expires_ms: int


@dataclass(frozen=True, slots=True)
class RemoveDelegationTokenRecord:
    id: str


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
    | ControllerRecord
    | AclRecord
    | RemoveAclRecord
    | ClientQuotaRecord
    | ScramCredentialRecord
    | DelegationTokenRecord
    | RemoveDelegationTokenRecord
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
        fields.get("leader_epoch", 0),
        fields.get("partition_epoch", 0),
        tuple(map(uuid_from_string, fields.get("directories", ()))),
        tuple(fields.get("adding_replicas", ())),
        tuple(fields.get("removing_replicas", ())),
        tuple(fields.get("elr", ())),
        tuple(fields.get("last_known_elr", ())),
        fields.get("leader_recovery_state", RECOVERED),
    )


def _partition_change(fields: Fields) -> MetadataRecord:
    directories = fields.get("directories")
    return PartitionChangeRecord(
        uuid_from_string(fields["topic_id"]),
        fields["partition"],
        fields.get("leader"),
        _broker_ids(fields, "isr"),
        _broker_ids(fields, "replicas"),
        _broker_ids(fields, "adding_replicas"),
        _broker_ids(fields, "removing_replicas"),
        _broker_ids(fields, "elr"),
        _broker_ids(fields, "last_known_elr"),
        fields.get("leader_recovery_state"),
        None if directories is None else tuple(map(uuid_from_string, directories)),
    )


def _broker_ids(fields: Fields, name: str) -> tuple[int, ...] | None:
    broker_ids = fields.get(name)
    return None if broker_ids is None else tuple(broker_ids)


def _remove_topic(fields: Fields) -> MetadataRecord:
    return RemoveTopicRecord(uuid_from_string(fields["topic_id"]))


def _config(fields: Fields) -> MetadataRecord:
    return ConfigRecord(fields["resource_type"], fields["resource_name"], fields["key"], fields.get("value"))


def _broker(fields: Fields) -> MetadataRecord:
    listeners = tuple(Listener(*listener) for listener in fields["listeners"])
    incarnation = uuid_from_string(fields["incarnation"])
    return BrokerRecord(
        fields["id"],
        fields["epoch"],
        incarnation,
        listeners,
        fields.get("rack"),
        fields.get("fenced", False),
        fields.get("in_controlled_shutdown", False),
        tuple(map(uuid_from_string, fields.get("offline_directories", ()))),
    )


def _remove_broker(fields: Fields) -> MetadataRecord:
    return RemoveBrokerRecord(fields["id"], fields["epoch"])


def _producer_ids(fields: Fields) -> MetadataRecord:
    return ProducerIdsRecord(fields["broker_id"], fields["broker_epoch"], fields["next_producer_id"])


def _feature(fields: Fields) -> MetadataRecord:
    return FeatureRecord(fields["name"], fields["level"])


def _controller(fields: Fields) -> MetadataRecord:
    return ControllerRecord(fields["id"], fields["epoch"])


def _acl(fields: Fields) -> MetadataRecord:
    return AclRecord(
        uuid_from_string(fields["id"]),
        fields["resource_type"],
        fields["resource_name"],
        fields["pattern_type"],
        fields["principal"],
        fields["host"],
        fields["operation"],
        fields["permission"],
    )


def _remove_acl(fields: Fields) -> MetadataRecord:
    return RemoveAclRecord(uuid_from_string(fields["id"]))


def _client_quota(fields: Fields) -> MetadataRecord:
    entity = tuple((kind, name) for kind, name in fields["entity"])
    return ClientQuotaRecord(entity, fields["key"], fields.get("value"))


def _scram_credential(fields: Fields) -> MetadataRecord:
    return ScramCredentialRecord(fields["user"], fields["mechanism"], fields.get("credential"))


def _delegation_token(fields: Fields) -> MetadataRecord:
    return DelegationTokenRecord(
        fields["id"],
        fields["owner"],
        fields["requester"],
        tuple(fields["renewers"]),
        fields["issued_ms"],
        fields["ends_ms"],
        fields["expires_ms"],
    )


def _remove_delegation_token(fields: Fields) -> MetadataRecord:
    return RemoveDelegationTokenRecord(fields["id"])


@dataclass(frozen=True, slots=True)
class _Shape:
    type: str
    version: int
    decode: Callable[[Fields], MetadataRecord]


# One row per record. The type and the version are part of the format on disk.
_SHAPES: dict[type[MetadataRecord], _Shape] = {
    TopicRecord: _Shape("topic", 0, _topic),
    PartitionRecord: _Shape("partition", 1, _partition),
    PartitionChangeRecord: _Shape("partition-change", 1, _partition_change),
    RemoveTopicRecord: _Shape("remove-topic", 0, _remove_topic),
    ConfigRecord: _Shape("config", 0, _config),
    BrokerRecord: _Shape("broker", 1, _broker),
    RemoveBrokerRecord: _Shape("remove-broker", 0, _remove_broker),
    ProducerIdsRecord: _Shape("producer-ids", 0, _producer_ids),
    FeatureRecord: _Shape("feature", 0, _feature),
    ControllerRecord: _Shape("controller", 0, _controller),
    AclRecord: _Shape("acl", 0, _acl),
    RemoveAclRecord: _Shape("remove-acl", 0, _remove_acl),
    ClientQuotaRecord: _Shape("client-quota", 0, _client_quota),
    ScramCredentialRecord: _Shape("scram-credential", 0, _scram_credential),
    DelegationTokenRecord: _Shape("delegation-token", 0, _delegation_token),
    RemoveDelegationTokenRecord: _Shape("remove-delegation-token", 0, _remove_delegation_token),
}
_SHAPES_BY_TYPE = {shape.type: shape for shape in _SHAPES.values()}
# The fields of each record with their default values; a value that is its default is not written.
_DEFAULTS = {record: [(each.name, each.default) for each in fields_of(record)] for record in _SHAPES}


def _json_value(value: object) -> object:
    if isinstance(value, bytes):
        return uuid_to_string(value)
    if isinstance(value, Listener):
        return [value.name, value.host, value.port, value.protocol]
    if isinstance(value, tuple):
        return [_json_value(item) for item in value]
    return value


def record_to_json(record: MetadataRecord) -> Fields:
    """The record as an object for JSON, without the fields that have their default values."""
    shape = _SHAPES[type(record)]
    fields: Fields = {"type": shape.type, "version": shape.version}
    for name, default in _DEFAULTS[type(record)]:
        value = getattr(record, name)
        if value is not None and (default is MISSING or value != default):
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
