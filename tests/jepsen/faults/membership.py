"""Replicas that move, and brokers that come and go."""

import abc
import contextlib
from collections.abc import Sequence

from tests.jepsen.faults.base import BrokerFault, Fault, System
from tests.jepsen.faults.roles import Role

from barnabas.client.errors import KafkaError
from barnabas.client.types import TopicPartition

Replicas = dict[TopicPartition, list[int]]


class _Moved(Fault):
    """Partitions of a topic get other replicas; heal() waits for the end of the move, and moves them back."""

    def __init__(self, system: System, topic: str) -> None:
        super().__init__(system)
        self._topic = topic
        self._before: Replicas = {}

    def _inject(self) -> None:
        self._before = replicas_of(self.system, [self._topic])
        move(self.system, {place: self._new(replicas) for place, replicas in self._before.items()})

    @abc.abstractmethod
    def _new(self, replicas: Sequence[int]) -> list[int]: ...

    def _heal(self) -> None:
        wait_for_moves(self.system)
        move(self.system, self._before)
        wait_for_moves(self.system)


class Reassigned(_Moved):
    """Each replica moves to the next broker."""

    def _new(self, replicas: Sequence[int]) -> list[int]:
        ids = sorted(self.system.brokers)
        return [ids[(ids.index(each) + 1) % len(ids)] for each in replicas]

    def describe(self) -> str:
        return f"all replicas of {self._topic} move"


class FactorChanged(_Moved):
    """Each partition has `factor` replicas."""

    def __init__(self, system: System, topic: str, factor: int) -> None:
        super().__init__(system, topic)
        self._factor = factor

    def _new(self, replicas: Sequence[int]) -> list[int]:
        others = [each for each in sorted(self.system.brokers) if each not in replicas]
        return [*replicas, *others][: self._factor]

    def describe(self) -> str:
        return f"{self._topic} gets {self._factor} replicas"


class BrokerAdded(Fault):
    """One more broker, which gets a replica of each partition of a topic. heal() moves everything away from
    it, and removes it. `broker_id` is its id."""

    def __init__(self, system: System, topic: str) -> None:
        super().__init__(system)
        self._topic = topic
        self.broker_id = -1

    def _inject(self) -> None:
        self.broker_id = self.system.add_broker()
        before = replicas_of(self.system, [self._topic])
        move(self.system, {place: [*each[:-1], self.broker_id] for place, each in before.items()})

    def _heal(self) -> None:
        wait_for_moves(self.system)
        move_away(self.system, self.broker_id)
        self.system.remove_broker(self.broker_id)

    def describe(self) -> str:
        return "one more broker" + (f" ({self.broker_id})" if self.broker_id > 0 else "")


class BrokerRemoved(BrokerFault):
    """Everything moves away from a broker, and it is removed; partitions have fewer replicas if there is
    nobody else. heal() starts an empty broker with the same id and moves everything back."""

    def __init__(self, system: System, role: Role) -> None:
        super().__init__(system, role)
        self._before: Replicas = {}

    def _inject(self) -> None:
        for broker_id in self.broker_ids:
            self._before |= move_away(self.system, broker_id)
            self.system.remove_broker(broker_id)

    def _heal(self) -> None:
        for broker_id in self.broker_ids:
            self.system.add_broker(broker_id)
        move(self.system, self._before)
        wait_for_moves(self.system)

    def describe(self) -> str:
        return f"removal of {self.whom()}"


def replicas_of(system: System, topics: Sequence[str] | None = None) -> Replicas:
    """The replicas of all partitions of these topics; None: all topics, also internal ones."""
    with system.admin() as admin:
        names = list(admin.list_topics(include_internal=True)) if topics is None else topics
        described = admin.describe_topics(list(names))
    return {
        TopicPartition(name, partition.partition): [node.id for node in partition.replicas]
        for name, topic in described.items()
        for partition in topic.partitions
    }


def move(system: System, replicas: Replicas) -> None:
    """Begin to move partitions."""
    if replicas:
        with system.admin() as admin:
            admin.alter_partition_reassignments(replicas)


def wait_for_moves(system: System) -> None:
    def have_ended() -> bool:
        # There may be no controller for a while.
        with contextlib.suppress(KafkaError), system.admin() as admin:
            return not admin.list_partition_reassignments()
        return False

    system.wait_until(have_ended, "all moves of partitions have ended")


def move_away(system: System, broker_id: int) -> Replicas:
    """Move all partitions from a broker to others, and wait for it. Returns where they were."""
    before = {place: ids for place, ids in replicas_of(system).items() if broker_id in ids}
    move(system, {place: without(system, broker_id, ids) for place, ids in before.items()})
    wait_for_moves(system)
    return before


def without(system: System, broker_id: int, replicas: Sequence[int]) -> list[int]:
    others = [each for each in sorted(system.brokers) if each not in replicas]
    kept = [each for each in replicas if each != broker_id]
    return kept + others[:1]
