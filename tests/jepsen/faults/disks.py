"""Disks that are full, broken, read-only or slow, that lose power, and files that are damaged."""

import abc
import errno
import random
from pathlib import Path
from typing import ClassVar

from tests.jepsen.faults.base import BrokerFault, System
from tests.jepsen.faults.damage import Damage
from tests.jepsen.faults.processes import Killed
from tests.jepsen.faults.roles import Role
from tests.jepsen.shim import ALL_WRITES, Operation, PowerLoss, Rule, lose_power


class _DiskFault(BrokerFault):
    """`within` is the directory that fails, below the data directory of the broker."""

    words: ClassVar[str]

    def __init__(self, system: System, role: Role, within: str | Path = ".") -> None:
        super().__init__(system, role)
        self._within = within
        self._rules: list[Rule] = []

    def _inject(self) -> None:
        for broker_id in self.broker_ids:
            self._rules.append(self._rule(broker_id, self.system.brokers[broker_id].data_dir / self._within))

    @abc.abstractmethod
    def _rule(self, broker_id: int, directory: Path) -> Rule: ...

    @property
    def hits(self) -> int:
        """How many calls of brokers have met the fault since the injection."""
        return sum(rule.hits for rule in self._rules)

    def _heal(self) -> None:
        while self._rules:
            self._rules.pop().heal()

    def describe(self) -> str:
        return f"{self.words} of {self.whom()}"


class FullDisk(_DiskFault):
    """No space left, after `room_bytes` more: the last write before is cut short."""

    words = "full disk"

    def __init__(self, system: System, role: Role, within: str | Path = ".", *, room_bytes: int = 0) -> None:
        super().__init__(system, role, within)
        self._room_bytes = room_bytes

    def _rule(self, broker_id: int, directory: Path) -> Rule:
        return self.system.shims[broker_id].fail(
            Operation.WRITE | Operation.CREATE, errno.ENOSPC, directory, room_bytes=self._room_bytes
        )


class BrokenDisk(_DiskFault):
    """Reading and writing fails with EIO."""

    words = "broken disk"

    def _rule(self, broker_id: int, directory: Path) -> Rule:
        return self.system.shims[broker_id].fail(ALL_WRITES | Operation.READ, errno.EIO, directory)


class ReadOnlyDisk(_DiskFault):
    """Writing fails with EROFS, as when Linux has met errors of a disk."""

    words = "read-only disk"

    def _rule(self, broker_id: int, directory: Path) -> Rule:
        return self.system.shims[broker_id].fail(ALL_WRITES & ~Operation.SYNC, errno.EROFS, directory)


class SlowDisk(_DiskFault):
    """Each sync takes so many seconds longer."""

    words = "slow disk"

    def __init__(self, system: System, role: Role, seconds: float, within: str | Path = ".") -> None:
        super().__init__(system, role, within)
        self._seconds = seconds

    def _rule(self, broker_id: int, directory: Path) -> Rule:
        return self.system.shims[broker_id].delay(Operation.SYNC, self._seconds, directory)

    def describe(self) -> str:
        return f"{super().describe()}: {self._seconds:g} s for a sync"


class PowerLost(Killed):
    """The machine loses power: only what was synced stays. `losses` says what did not. Healed by a start.
    Needs FaultyCluster(tracks_syncs=True)."""

    def __init__(self, system: System, role: Role, chance: random.Random | None = None) -> None:
        super().__init__(system, role)
        self._chance = chance
        self.losses: dict[int, PowerLoss] = {}

    def _inject(self) -> None:
        super()._inject()
        for broker_id in self.broker_ids:
            shim, directory = self.system.shims[broker_id], self.system.brokers[broker_id].data_dir
            self.losses[broker_id] = lose_power(shim, directory, self._chance)

    def describe(self) -> str:
        return f"power failure of {self.whom()}"


class Damaged(Killed):
    """A broker is killed, and the files of its replica of a partition are damaged. Healed by a start."""

    def __init__(self, system: System, role: Role, partition: tuple[str, int], damage: Damage) -> None:
        super().__init__(system, role)
        self._partition = partition
        self._damage = damage

    def _inject(self) -> None:
        super()._inject()
        topic, index = self._partition
        for broker_id in self.broker_ids:
            self._damage.apply(self.system.brokers[broker_id].data_dir / f"{topic}-{index}")

    def describe(self) -> str:
        topic, index = self._partition
        return f"{self._damage} in {topic}-{index} of {self.whom()}"
