"""The types of the admin client's arguments and results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.client.habits import check_keywords
from barnabas.client.types import Node, TopicPartition
from barnabas.errors import KafkaError
from barnabas.ids import ZERO_UUID, Uuid


class AdminError(KafkaError):
    """Some items of a call failed: `errors` has the error of each, `results` the values of the others.

    The code and the message are those of the first failure."""

    def __init__(self, errors: Mapping[Any, KafkaError], results: Mapping[Any, Any]) -> None:
        self.errors = dict(errors)
        self.results = dict(results)
        item, first = next(iter(self.errors.items()))
        more = f" (and {len(self.errors) - 1} more)" if len(self.errors) > 1 else ""
        super().__init__(first.code, f"{item}: {first.message}{more}")


class _NewTopic(NamedTuple):
    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = {}
    assignments: Mapping[int, list[int]] = {}


class NewTopic(_NewTopic):
    """-1 means the broker's default. `assignments` gives the replicas of each partition instead."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __new__(cls, *fields: Any, **named: Any) -> "NewTopic":
            check_keywords("NewTopic()", named, cls._fields)
            return super().__new__(cls, *fields, **named)


class NewPartitions(NamedTuple):
    """The new total, and optionally the replicas of each added partition."""

    total: int
    assignments: list[list[int]] | None = None


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic as it was created; -1 if the broker is too old to send a number."""

    name: str
    topic_id: Uuid
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicListing:
    """A topic in the list of all topics."""

    name: str
    topic_id: Uuid = ZERO_UUID
    is_internal: bool = False


class ConfigResourceType(IntEnum):
    """What has settings. BROKER_LOGGER is the level of a broker's loggers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """Something that has settings. The name of a broker is its id; the empty name means all brokers."""

    type: ConfigResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.name.lower()} {self.name!r}"


class ConfigOperation(IntEnum):
    """What to do with a setting. APPEND and SUBTRACT change the elements of a list."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    """One change of a setting; DELETE needs no value."""

    name: str
    value: str | None = None
    operation: ConfigOperation = ConfigOperation.SET


class ConfigSynonym(NamedTuple):
    """Another setting from which a value may come, such as log.retention.ms for retention.ms."""

    name: str
    value: str | None
    source: int


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting; `source` and `type` are numbered as in barnabas.config.definition.Source and Type."""

    name: str
    value: str | None
    source: int
    is_sensitive: bool = False
    is_read_only: bool = False
    type: int = 0
    synonyms: tuple[ConfigSynonym, ...] = ()
    documentation: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """`fenced`: ids of brokers that are registered but do not serve; in `nodes` only if requested."""

    cluster_id: str
    controller: Node | None
    nodes: tuple[Node, ...]
    fenced: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ApiVersionsDescription:
    """What a broker supports: the (first, last) version of each API key, and its features."""

    node: Node
    versions: Mapping[int, tuple[int, int]]
    supported_features: Mapping[str, tuple[int, int]]
    finalized_features: Mapping[str, int]


class PartitionReassignment(NamedTuple):
    """A partition that is moving to other brokers: all replicas, the added ones and the removed ones."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class TopicPartitionReplica(NamedTuple):
    """The replica of a partition on one broker."""

    topic: str
    partition: int
    broker_id: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class ElectionType(IntEnum):
    """PREFERRED makes the first replica the leader, if it is in sync. UNCLEAN makes any living replica the
    leader of a partition without one, and may lose records."""

    PREFERRED = 0
    UNCLEAN = 1


class ReplicaInfo(NamedTuple):
    """A replica in a log directory: its bytes, and how many records it is behind. `is_future`: it is a copy
    for a move to another directory."""

    size: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirDescription:
    """`error` is None for a directory that works. The sizes are -1 if the broker does not send them."""

    error: KafkaError | None
    replicas: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int = -1
    usable_bytes: int = -1


class OffsetSpec(IntEnum):
    """Which offset to look up; any other number is a timestamp in milliseconds."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


class ListedOffset(NamedTuple):
    """The offset, -1 if there is none; the timestamp of its record if the lookup was by timestamp."""

    offset: int
    timestamp: int
    leader_epoch: int


# Groups of other kinds (connect, share, streams) use the same coordinators.
_CONSUMER_TYPES = ("", "classic", "consumer")


@dataclass(frozen=True, slots=True)
class ConsumerGroupListing:
    """`type` is classic or consumer, or empty if the broker is too old to send it. A simple group has only
    offsets, no members."""

    group_id: str
    is_simple: bool
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group of any type. `type` is classic, consumer, share or streams, or empty if the broker is too old;
    `protocol` is empty for a group that has only offsets."""

    group_id: str
    type: str
    protocol: str
    state: str

    @property
    def is_of_consumers(self) -> bool:
        return self.type in _CONSUMER_TYPES and self.protocol in ("", "consumer")


class FeatureDescription(NamedTuple):
    """What a broker supports, and the level in use (0: none). `epoch` changes with the levels."""

    min_version: int
    max_version: int
    level: int
    epoch: int | None


class FeatureUpgrade(IntEnum):
    """Whether a feature may get a lower level, and whether data may be lost by that."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The level that a feature should get; 0 switches it off."""

    level: int
    kind: FeatureUpgrade


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """The last six fields are known only in groups with the consumer protocol. `is_upgraded`: whether the
    member itself uses that protocol; None if the broker is too old to send it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: frozenset[TopicPartition]
    target_assignment: frozenset[TopicPartition] | None = None
    member_epoch: int | None = None
    rack_id: str | None = None
    subscribed_topics: tuple[str, ...] | None = None
    subscribed_regex: str | None = None
    is_upgraded: bool | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescription:
    """`type` is classic or consumer. `assignor` is the protocol that a classic group has chosen."""

    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    members: tuple[MemberDescription, ...]
    coordinator: Node
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class ProducerState:
    """A producer that has written to a partition. -1 means no open transaction, or an unknown value."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_transaction_start_offset: int


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id in the list of all of them."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator_id: int = -1


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """`start_time_ms` is None when no transaction is open."""

    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    partitions: frozenset[TopicPartition]


class AbortTransactionSpec(NamedTuple):
    """A hanging transaction, with the values that describe_producers returns."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
