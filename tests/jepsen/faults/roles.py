"""Which brokers a fault happens to: by id, or by what they do at the moment of its injection."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tests.support.raw_client import RawClient

from barnabas.client.errors import KafkaError
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest

if TYPE_CHECKING:
    from tests.jepsen.faults.base import System

FIND_COORDINATOR, FIND_COORDINATOR_VERSION = 10, 4
GROUP, TRANSACTION = 0, 1


class Role(Protocol):
    def find(self, system: "System") -> list[int]:
        """The brokers that have this role now; waits until somebody has it who answers."""


@dataclass(frozen=True)
class Brokers:
    """These brokers, whatever they do."""

    ids: tuple[int, ...]

    def __init__(self, *ids: int) -> None:
        object.__setattr__(self, "ids", ids)

    def find(self, system: "System") -> list[int]:
        return list(self.ids)

    def __str__(self) -> str:
        return f"broker {', '.join(map(str, self.ids))}"


@dataclass(frozen=True)
class All:
    """All brokers that run."""

    def find(self, system: "System") -> list[int]:
        return [broker_id for broker_id, broker in system.brokers.items() if broker.is_running]

    def __str__(self) -> str:
        return "all brokers"


@dataclass(frozen=True)
class Leader:
    topic: str
    partition: int = 0

    def find(self, system: "System") -> list[int]:
        return [_found(system, lambda: system.leader_of((self.topic, self.partition)), str(self))]

    def __str__(self) -> str:
        return f"the leader of {self.topic}-{self.partition}"


@dataclass(frozen=True)
class Followers:
    """The first `count` replicas of a partition that do not lead it; None: all of them."""

    topic: str
    partition: int = 0
    count: int | None = None

    def find(self, system: "System") -> list[int]:
        (leader,) = Leader(self.topic, self.partition).find(system)
        with system.admin() as admin:
            partition = admin.describe_topics([self.topic])[self.topic].partitions[self.partition]
        return [node.id for node in partition.replicas if node.id != leader][: self.count]

    def __str__(self) -> str:
        some = "all" if self.count is None else self.count
        return f"{some} of the followers of {self.topic}-{self.partition}"


@dataclass(frozen=True)
class Controller:
    def find(self, system: "System") -> list[int]:
        return [_found(system, system.controller, str(self))]

    def __str__(self) -> str:
        return "the controller"


@dataclass(frozen=True)
class GroupCoordinator:
    group: str

    def find(self, system: "System") -> list[int]:
        return [_found(system, lambda: _coordinator(system, GROUP, self.group), str(self))]

    def __str__(self) -> str:
        return f"the coordinator of group {self.group}"


@dataclass(frozen=True)
class TransactionCoordinator:
    transactional_id: str

    def find(self, system: "System") -> list[int]:
        return [_found(system, lambda: _coordinator(system, TRANSACTION, self.transactional_id), str(self))]

    def __str__(self) -> str:
        return f"the coordinator of transactional id {self.transactional_id}"


def _found(system: "System", ask: Callable[[], int], what: str) -> int:
    """Ask until the answer is a broker that answers. For a while after the death of a broker, others still
    name it."""
    found = -1

    def is_found() -> bool:
        nonlocal found
        with contextlib.suppress(KafkaError, OSError):
            found = ask()
        return found in system.brokers and system.brokers[found].is_answering

    system.wait_until(is_found, f"a broker that answers is {what}")
    return found


def _coordinator(system: "System", kind: int, key: str) -> int:
    """-1 if there is none; asking makes the cluster create its internal topic."""
    answering = [broker for broker in system.brokers.values() if broker.is_answering]
    if not answering:
        return -1
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    with RawClient("127.0.0.1", answering[0].port) as client:
        (answer,) = client.call(FIND_COORDINATOR, FIND_COORDINATOR_VERSION, request).coordinators
    return int(answer.node_id) if answer.error_code == 0 else -1
