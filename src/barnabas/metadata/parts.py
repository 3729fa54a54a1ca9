"""The parts of an image: broker, topic, partition. Immutable values."""

from dataclasses import dataclass
from typing import TypeAlias

from barnabas.ids import Uuid
from barnabas.metadata.records import NO_LEADER, RECOVERED, Listener

ConfigResource: TypeAlias = tuple[int, str]

# Kafka's numbers of the resource types that have configs.
TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
GROUP_RESOURCE = 32
CLUSTER_DEFAULT: ConfigResource = (BROKER_RESOURCE, "")


@dataclass(frozen=True, slots=True)
class PartitionImage:
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[Uuid, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = RECOVERED

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    id: Uuid
    partitions: tuple[PartitionImage, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerImage:
    id: int
    epoch: int
    incarnation: Uuid
    listeners: tuple[Listener, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool = False
    offline_directories: tuple[Uuid, ...] = ()

    @property
    def is_active(self) -> bool:
        return not self.fenced and not self.in_controlled_shutdown

    def listener(self, name: str) -> Listener | None:
        return next((listener for listener in self.listeners if listener.name == name), None)


def collision_key(name: str) -> str | None:
    """The form of `name` in metric names, where '.' and '_' are the same; None if it has neither."""
    return name.replace(".", "_") if "." in name or "_" in name else None
