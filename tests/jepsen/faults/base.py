"""What all faults have in common, and what they need of the system they happen to."""

import abc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, Self

from tests.jepsen.faults.roles import Role
from tests.jepsen.network import Frames
from tests.jepsen.packets import PacketNetwork
from tests.jepsen.shim import Shim

from barnabas.client import Admin
from barnabas.testing.ensemble import ZooKeeperEnsemble
from barnabas.testing.links import LinkFault
from barnabas.testing.relay import Quality


class Process(Protocol):
    """A broker."""

    data_dir: Path
    port: int

    @property
    def pid(self) -> int: ...
    @property
    def is_running(self) -> bool: ...
    @property
    def is_answering(self) -> bool: ...
    def kill(self) -> None: ...
    def stop(self) -> int: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class System(Protocol):
    """The part of FaultyCluster that faults use. `port` of a broker, `admin`, `leader_of` and `controller`
    must not depend on links: questions of the test are answered during faults, too."""

    shims: dict[int, Shim]

    @property
    def brokers(self) -> Mapping[int, Process]: ...
    @property
    def zookeepers(self) -> ZooKeeperEnsemble: ...
    @property
    def frames(self) -> Frames: ...
    @property
    def packets(self) -> PacketNetwork: ...
    def admin(self, broker_id: int | None = None) -> Admin: ...
    def leader_of(self, partition: tuple[str, int]) -> int: ...
    def controller(self) -> int: ...
    def restart(self, *broker_ids: int) -> None: ...
    def add_broker(self, broker_id: int | None = None) -> int: ...
    def remove_broker(self, broker_id: int) -> None: ...
    def cut(self, one: int | str, other: int | str, *, one_way: bool = False) -> LinkFault: ...
    def degrade(
        self, one: int | str, other: int | str, quality: Quality, *, one_way: bool = False
    ) -> LinkFault: ...
    def wait_until(self, condition: Callable[[], bool], what: str) -> None: ...


class Fault(abc.ABC):
    """One fault of one system. inject() returns when the fault has begun, heal() when the system is whole
    again as far as this fault is concerned; it does not wait for replicas to catch up. heal() without
    inject() does nothing.

    A fault can be used again after heal(). `injected` says whether it is present."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.injected = False

    def inject(self) -> None:
        self._check_absent()
        # Also if it fails half way: heal() then ends what has begun.
        self.injected = True
        self._inject()

    def heal(self) -> None:
        if self.injected:
            self._heal()
            self.injected = False

    def _check_absent(self) -> None:
        if self.injected:
            raise RuntimeError(f"{self} is present already")

    @abc.abstractmethod
    def _inject(self) -> None: ...

    @abc.abstractmethod
    def _heal(self) -> None: ...

    @abc.abstractmethod
    def describe(self) -> str:
        """What happens, in a few words."""

    def __repr__(self) -> str:
        return self.describe()

    def __enter__(self) -> Self:
        self.inject()
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()


class BrokerFault(Fault):
    """A fault of those brokers that have a role at the moment of injection; `broker_ids` are these."""

    def __init__(self, system: System, role: Role) -> None:
        super().__init__(system)
        self.role = role
        self.broker_ids: list[int] = []

    def inject(self) -> None:
        self._check_absent()
        self.broker_ids = self.role.find(self.system)
        super().inject()

    def whom(self) -> str:
        """The role, and the brokers that have it."""
        ids = ", ".join(map(str, self.broker_ids))
        return f"{self.role} (broker {ids})" if ids and f"broker {ids}" != str(self.role) else str(self.role)
