"""Random faults one after the other, for a long run: which ones, and for how long, follows from the seed
alone."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tests.jepsen.faults.base import Fault, System
from tests.jepsen.faults.clocks import ClockSkewed, ClockStrobing
from tests.jepsen.faults.disks import FullDisk, SlowDisk
from tests.jepsen.faults.hostile import HostileClients
from tests.jepsen.faults.links import BROKERS, Degraded, Isolated
from tests.jepsen.faults.membership import Reassigned
from tests.jepsen.faults.processes import Killed, Paused, Restarted, Stopped
from tests.jepsen.faults.roles import All, Brokers, Controller, GroupCoordinator, Leader, Role
from tests.jepsen.faults.roles import TransactionCoordinator as Transactions
from tests.jepsen.faults.zookeeper import SessionsExpired, ZooKeeperDown, ZooKeeperPaused, ZooKeeperSlow

from barnabas.testing.links import CLIENT, ZOOKEEPER
from barnabas.testing.relay import Quality

QUIET_SHARE, OUTAGE_SHARE = 0.25, 0.05
# So many kinds of faults at a time.
TOGETHER_MAX = 3


@dataclass(frozen=True)
class Scope:
    """What there is that may be disturbed. `seconds` is the length of a window: from, to."""

    brokers: Sequence[int]
    topic: str
    partitions: int = 1
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    seconds: tuple[float, float] = (5.0, 20.0)
    # Whether brokers may be killed and stopped. If not, they live long, and their memory can be compared.
    ends_processes: bool = True


@dataclass(frozen=True)
class Window:
    """These faults at the same time, for so long; none is a quiet window."""

    faults: tuple[Fault, ...]
    seconds: float

    def __str__(self) -> str:
        return f"{'; '.join(map(repr, self.faults)) or 'no faults'} for {self.seconds:.1f} s"


class _Makers:
    """Makes a random fault of each kind."""

    def __init__(self, system: System, scope: Scope, chance: random.Random) -> None:
        self.system, self.scope, self._chance = system, scope, chance

    def role(self) -> Role:
        scope, chance = self.scope, self._chance
        roles: list[Role] = [
            Brokers(chance.choice(scope.brokers)),
            Leader(scope.topic, chance.randrange(scope.partitions)),
            Controller(),
        ]
        roles += [GroupCoordinator(group) for group in scope.groups]
        roles += [Transactions(name) for name in scope.transactional_ids]
        return chance.choice(roles)

    def process(self) -> Fault:
        system, role = self.system, self.role()
        if not self.scope.ends_processes:
            return Paused(system, role)
        return self._chance.choice(
            (
                lambda: Killed(system, role),
                lambda: Stopped(system, role),
                lambda: Paused(system, role),
                lambda: Restarted(system, role),
                lambda: Restarted(system, role, clean=False),
            )
        )()

    def outage(self) -> Fault:
        """Alone: no broker has a role then."""
        return (Killed if self.scope.ends_processes else Paused)(self.system, All())

    def link(self) -> Fault:
        system, role, chance = self.system, self.role(), self._chance
        others = chance.choice(((BROKERS,), (ZOOKEEPER,), (CLIENT,), (BROKERS, ZOOKEEPER, CLIENT)))
        quality = Quality(delay_ms=50, jitter_ms=50, loss=0.02, bytes_per_second=1_000_000)
        return chance.choice(
            (
                lambda: Isolated(system, role, others),
                lambda: Isolated(system, role, others, one_way=True),
                lambda: Degraded(system, quality, role, others),
                lambda: Degraded(system, Quality(resets=0.01), role, others),
            )
        )()

    def disk(self) -> Fault:
        system, role, room_bytes = self.system, self.role(), self._chance.randrange(10_000)
        return self._chance.choice(
            (
                lambda: FullDisk(system, role, room_bytes=room_bytes),
                lambda: SlowDisk(system, role, 0.5),
            )
        )()

    def clock(self) -> Fault:
        system, role, seconds = self.system, self.role(), self._chance.choice((-60, -1, 1, 60))
        return self._chance.choice(
            (lambda: ClockSkewed(system, role, seconds), lambda: ClockStrobing(system, role, seconds))
        )()

    def zookeeper(self) -> Fault:
        system = self.system
        return self._chance.choice(
            (
                lambda: ZooKeeperDown(system),
                lambda: ZooKeeperPaused(system),
                lambda: ZooKeeperSlow(system, 1000),
                lambda: SessionsExpired(system, of_connected=True),
            )
        )()

    def membership(self) -> Fault:
        return Reassigned(self.system, self.scope.topic)

    def hostile(self) -> Fault:
        return HostileClients(self.system, All(), 100, seed=self._chance.randrange(1000))


class RandomFaults:
    """Windows with a random subset of the kinds of faults; a quarter of the windows has none. Two rotations
    with the same seed and scope have the same windows. Which broker leads, though, is found at the
    injection."""

    def __init__(self, system: System, scope: Scope, seed: int) -> None:
        self._chance = random.Random(seed)
        self._makers = makers = _Makers(system, scope, self._chance)
        # In the order of injection: a move of partitions needs a whole system, a restart needs ZooKeeper and
        # the other brokers. Healed in the opposite order.
        self._kinds: Mapping[str, Callable[[], Fault]] = {
            "membership": makers.membership,
            "process": makers.process,
            "disk": makers.disk,
            "clock": makers.clock,
            "hostile": makers.hostile,
            "link": makers.link,
            "zookeeper": makers.zookeeper,
        }

    def move_to(self, system: System, scope: Scope) -> None:
        """What windows disturb from now on. If the numbers of brokers, partitions, groups and transactional
        ids are those of the former scope, so are the kinds of faults."""
        self._makers.system, self._makers.scope = system, scope

    def windows(self) -> Iterator[Window]:
        """Without an end."""
        while True:
            yield Window(tuple(self._faults()), self._chance.uniform(*self._makers.scope.seconds))

    def _faults(self) -> list[Fault]:
        kind = self._chance.random()
        if kind < QUIET_SHARE:
            return []
        if kind < QUIET_SHARE + OUTAGE_SHARE:
            return [self._makers.outage()]
        kinds = self._chance.sample(sorted(self._kinds), self._chance.randint(1, TOGETHER_MAX))
        return [make() for kind, make in self._kinds.items() if kind in kinds]

    def run(self, seconds: float, begun: Callable[[Window], None] = lambda window: None) -> None:
        """Go through windows for so long; all faults are healed in the end. `begun` is called with each
        window when its faults are present, for a record of what happened when."""
        end = time.monotonic() + seconds
        for window in self.windows():
            if time.monotonic() > end:
                return
            with ExitStack() as healing:
                for fault in window.faults:
                    healing.callback(fault.heal)
                    fault.inject()
                begun(window)
                time.sleep(max(0.0, min(window.seconds, end - time.monotonic())))
