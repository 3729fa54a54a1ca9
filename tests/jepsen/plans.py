"""What the processes of a workload are to do: their number and kinds follow from a `Load`, the rest from the
seed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, cycle
from typing import Any

from tests.jepsen.clients.base import Group

from barnabas.ids import TopicPartition


@dataclass(frozen=True)
class Topic:
    name: str
    partitions: int

    def all(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, number) for number in range(self.partitions)]


@dataclass(frozen=True)
class ProcessPlan:
    """One process: a client with a number of its own in the history."""

    number: int
    kind: str  # a name in client_processes.KINDS
    library: str
    rate: float  # operations per second
    crash_share: float  # how many of its operations are followed by a crash of the client
    group: Group | None = None
    transactional_id: str | None = None


@dataclass(frozen=True)
class DriverPlan:
    """One operating system process with the clients of several processes of the history."""

    bootstrap: str
    history: str
    seed: int
    events: Topic
    copies: Topic
    processes: list[ProcessPlan]

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> DriverPlan:
        fields = json.loads(text)
        processes = [
            ProcessPlan(**{**each, "group": each["group"] and Group(**each["group"])})
            for each in fields.pop("processes")
        ]
        events, copies = Topic(**fields.pop("events")), Topic(**fields.pop("copies"))
        return cls(**fields, events=events, copies=copies, processes=processes)


@dataclass(frozen=True)
class Load:
    """How many processes of each kind there are. They take the libraries in turn. A group has
    `group_members` members; `modern_groups` use the protocol of KIP-848.

    The defaults are a few hundred operations per second, which leave a small machine time for the brokers."""

    writers: int = 2
    pipelining_writers: int = 2
    transactional_writers: int = 2
    readers: int = 2
    classic_groups: int = 1
    modern_groups: int = 1
    group_members: int = 2
    copiers: int = 0
    libraries: tuple[str, ...] = ("ours", "confluent")
    rate: float = 20.0
    crash_share: float = 0.005
    drivers: int = 2
    # Settings of each kind, such as {"copiers": {"rate": 5}}.
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)

    def processes(self, name: str) -> Iterator[ProcessPlan]:
        """`name` makes the groups and transactional ids those of one run."""
        numbers, libraries = count(1), cycle(self.libraries)

        def plan(kind: str, **parts: Any) -> ProcessPlan:
            own = {"rate": self.rate, "crash_share": self.crash_share, **parts, **self.settings.get(kind, {})}
            return ProcessPlan(next(numbers), kind, next(libraries), **own)

        for kind, many in (
            ("writer", self.writers),
            ("pipelining_writer", self.pipelining_writers),
            ("reader", self.readers),
        ):
            for _ in range(many):
                yield plan(kind)
        for number in range(self.transactional_writers):
            yield plan("transactional_writer", transactional_id=f"{name}-writer-{number}")
        for group in self.groups(name):
            for _ in range(self.group_members):
                yield plan("group_member", group=group)
        for number in range(self.copiers):
            group = Group(self.copying_group(name))
            yield plan("copier", group=group, transactional_id=f"{name}-copier-{number}")

    def groups(self, name: str) -> list[Group]:
        classic = [Group(f"{name}-classic-{number}") for number in range(self.classic_groups)]
        modern = [Group(f"{name}-modern-{number}", "consumer") for number in range(self.modern_groups)]
        return classic + modern

    @staticmethod
    def copying_group(name: str) -> str:
        return f"{name}-copiers"
