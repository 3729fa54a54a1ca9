"""Networks that are cut, slow or lossy, requests that are held back and answers that are lost."""

from collections.abc import Collection

from tests.jepsen.faults.base import BrokerFault, Fault, System
from tests.jepsen.faults.roles import All, Role
from tests.jepsen.network import Hold, LostAnswers, Which
from tests.jepsen.packets import PacketQuality

from barnabas.testing.links import CLIENT, ZOOKEEPER, LinkFault
from barnabas.testing.relay import Quality

BROKERS = "brokers"
EVERYBODY = (BROKERS, ZOOKEEPER, CLIENT)


class _LinksOfBrokers(BrokerFault):
    """A fault of the links between brokers and others: "brokers", "client", "zookeeper" or one of its
    servers, such as "zookeeper-2", or the ids of brokers."""

    def __init__(
        self, system: System, role: Role, others: Collection[int | str], *, one_way: bool = False
    ) -> None:
        super().__init__(system, role)
        self._others = others
        self._one_way = one_way
        self._faults: list[LinkFault] = []

    def _inject(self) -> None:
        others = list(self.system.brokers) if BROKERS in self._others else []
        named = [other for other in self._others if other != BROKERS]
        for broker_id in self.broker_ids:
            for other in (*others, *named):
                if other != broker_id:
                    self._faults.append(self._spoil(broker_id, other))

    def _spoil(self, broker_id: int, other: int | str) -> LinkFault:
        return self.system.cut(broker_id, other, one_way=self._one_way)

    def _heal(self) -> None:
        while self._faults:
            self._faults.pop().heal()

    def _names(self) -> str:
        return " and ".join(map(str, self._others))


class Isolated(_LinksOfBrokers):
    """Brokers without a network to the others. With `one_way`, what they send does not arrive, but they
    receive."""

    def __init__(
        self,
        system: System,
        role: Role,
        others: Collection[int | str] = (BROKERS,),
        *,
        one_way: bool = False,
    ) -> None:
        super().__init__(system, role, others, one_way=one_way)

    def describe(self) -> str:
        how = "one-way cut from" if self._one_way else "cut between"
        return f"{how} {self.whom()} {'to' if self._one_way else 'and'} {self._names()}"


class Degraded(_LinksOfBrokers):
    """Links that are slow, lossy or limited in both directions."""

    def __init__(
        self,
        system: System,
        quality: Quality,
        role: Role | None = None,
        others: Collection[int | str] = EVERYBODY,
    ) -> None:
        super().__init__(system, All() if role is None else role, others)
        self._quality = quality

    def _spoil(self, broker_id: int, other: int | str) -> LinkFault:
        return self.system.degrade(broker_id, other, self._quality)

    def describe(self) -> str:
        return f"{_described(self._quality)} between {self.whom()} and {self._names()}"


class Cut(Fault):
    """The link between two members, such as Cut(system, 1, "client"); one_way: from the first to the
    second."""

    def __init__(self, system: System, one: int | str, other: int | str, *, one_way: bool = False) -> None:
        super().__init__(system)
        self._one, self._other, self._one_way = one, other, one_way
        self._fault: LinkFault | None = None

    def _inject(self) -> None:
        self._fault = self.system.cut(self._one, self._other, one_way=self._one_way)

    def _heal(self) -> None:
        if self._fault is not None:
            self._fault.heal()

    def describe(self) -> str:
        if self._one_way:
            return f"one-way cut from {self._one} to {self._other}"
        return f"cut between {self._one} and {self._other}"


class BadPackets(Fault):
    """All packets of all links: lost, late, duplicated, reordered. Needs FaultyCluster(packets=True)."""

    def __init__(self, system: System, quality: PacketQuality) -> None:
        super().__init__(system)
        self._quality = quality

    def _inject(self) -> None:
        self.system.packets.degrade(self._quality)

    def _heal(self) -> None:
        self.system.packets.heal()

    def describe(self) -> str:
        return f"bad packets: {self._quality}"


class HeldRequests(Fault):
    """Requests of clients that are held back until heal(); `hold.wait()` returns when one has come."""

    def __init__(self, system: System, which: Which, count: int | None = None) -> None:
        super().__init__(system)
        self._which, self._count = which, count
        self.hold: Hold | None = None

    def _inject(self) -> None:
        self.hold = self.system.frames.hold(self._which, self._count)

    def _heal(self) -> None:
        assert self.hold is not None
        self.hold.release()

    def describe(self) -> str:
        return f"held requests: {_number(self._count)} like {self._which}"


class LosingAnswers(Fault):
    """Answers that do not arrive: the connection breaks instead; the request was carried out."""

    def __init__(self, system: System, which: Which, count: int | None = None) -> None:
        super().__init__(system)
        self._which, self._count = which, count
        self.lost: LostAnswers | None = None

    def _inject(self) -> None:
        self.lost = self.system.frames.lose_answers(self._which, self._count)

    def _heal(self) -> None:
        assert self.lost is not None
        self.lost.heal()

    def describe(self) -> str:
        return f"lost answers: {_number(self._count)} to requests like {self._which}"


def _number(count: int | None) -> str:
    return "all" if count is None else str(count)


def _described(quality: Quality) -> str:
    """Only what is not perfect."""
    bad = [
        f"{name}={value:g}"
        for name in Quality.__dataclass_fields__
        if (value := getattr(quality, name)) != getattr(Quality(), name)
    ]
    return f"a link with {', '.join(bad)}"
