"""All brokers are stopped cleanly and started again, one after the other, three times under load: nothing is
lost, nothing is there twice, and groups notice nothing: they keep their generations and their assignments."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random

import pytest
from tests.jepsen import told
from tests.jepsen.clients import base
from tests.jepsen.conftest import Run
from tests.jepsen.faults import Brokers, Restarted
from tests.jepsen.plans import Load
from tests.jepsen.stage import Stage

import barnabas
from barnabas.ids import TopicPartition

pytestmark = pytest.mark.faults

ROUNDS = 3
# Clients that do not crash: each change of a group is one of the cluster.
LOAD = Load(pipelining_writers=1, transactional_writers=1, crash_share=0.0)
PROTOCOLS = ("classic", "consumer")


class Member:
    """A consumer with a thread that polls. `seen` has its generations, and its partitions in each."""

    def __init__(self, stage: Stage, group: str, protocol: str, instance: str | None) -> None:
        self.seen: list[tuple[int, frozenset[TopicPartition]]] = []
        self.failure: BaseException | None = None
        settings = {
            "bootstrap.servers": stage.system.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "request.timeout.ms": base.REQUEST_TIMEOUT_MS,
            "reconnect.backoff.max.ms": base.BACKOFF_MS_MAX,
        }
        if instance is not None:
            settings["group.instance.id"] = instance
        if protocol == "classic":
            settings["session.timeout.ms"] = base.SESSION_TIMEOUT_MS
            settings["heartbeat.interval.ms"] = base.HEARTBEAT_INTERVAL_MS
        self._consumer = barnabas.Consumer(settings)
        self._consumer.subscribe([stage.topic])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._consumer.poll(0.1)
                generation = self._consumer.group_metadata().generation_id
                now = generation, frozenset(self._consumer.assignment())
                if generation >= 0 and now[1] and now not in self.seen[-1:]:
                    self.seen.append(now)
        except BaseException as failure:  # raised by stop(), in the test's thread
            self.failure = failure

    @property
    def generation(self) -> int:
        return self.seen[-1][0] if self.seen else -1

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return self.seen[-1][1] if self.seen else frozenset()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(30)
        self._consumer.close(10)
        if self.failure is not None:
            raise AssertionError("a member of a group has failed") from self.failure


class WatchedGroup:
    """A group with two members, which are static or not."""

    def __init__(self, stage: Stage, protocol: str, is_static: bool) -> None:
        self.name = f"{stage.name}-{protocol}-{'static' if is_static else 'dynamic'}"
        self._stage, self._protocol, self._is_static = stage, protocol, is_static
        self.members = [self._member(number) for number in range(2)]
        self.wait_until_stable()
        self.at_first = [(member.generation, member.partitions) for member in self.members]

    def _member(self, number: int) -> Member:
        instance = f"instance-{number}" if self._is_static else None
        return Member(self._stage, self.name, self._protocol, instance)

    def wait_until_stable(self) -> None:
        def is_stable() -> bool:
            owned = [partition for member in self.members for partition in member.partitions]
            generations = {member.generation for member in self.members}
            return sorted(owned) == self._stage.events.all() and len(generations) == 1

        self._stage.system.wait_until(is_stable, f"group {self.name} is stable")

    def replace_member(self, number: int) -> None:
        """As when its process is started again."""
        self.members[number].stop()
        self.members[number] = self._member(number)
        self.wait_until_stable()

    def add_member(self) -> None:
        self.members.append(self._member(len(self.members)))
        self._stage.system.wait_until(
            lambda: self.members[-1].generation >= 0, f"{self.name} has a member more"
        )
        self.wait_until_stable()

    @property
    def generations(self) -> set[int]:
        return {generation for member in self.members for generation, _ in member.seen}

    def check(self) -> None:
        """Nothing has changed since the first assignment."""
        for first, member in zip(self.at_first, self.members, strict=True):
            later = [state for state in member.seen if state[0] >= first[0]]
            assert set(later) == {first}, f"{self.name}: first {first}, then {later}"

    def stop(self) -> None:
        for member in self.members:
            member.stop()


@contextmanager
def watched_groups(stage: Stage) -> Iterator[dict[tuple[str, bool], WatchedGroup]]:
    with ExitStack() as stopping:
        groups = {}
        for protocol in PROTOCOLS:
            for is_static in (True, False):
                group = groups[protocol, is_static] = WatchedGroup(stage, protocol, is_static)
                stopping.callback(group.stop)
        yield groups


def test_brokers_are_restarted_in_turn(run: Run) -> None:
    with run(LOAD) as stage, watched_groups(stage) as groups:
        chance = Random(stage.seed)
        stage.wait_for_progress(1, ["group_member"])
        began = time.monotonic()
        for number in range(ROUNDS):
            for broker_id in chance.sample(sorted(stage.system.brokers), 3):
                with stage.fault(Restarted(stage.system, Brokers(broker_id))):
                    pass
                stage.wait_until_in_sync()
            # A static member that is started again gets what it had, and the others notice nothing.
            if number < ROUNDS - 1:
                for protocol in PROTOCOLS:
                    groups[protocol, True].replace_member(number)
        for group in groups.values():
            group.check()
        assert told.rebalances(stage, began) == []
        for protocol in PROTOCOLS:
            check_growth(groups[protocol, False])


def check_growth(group: WatchedGroup) -> None:
    """The generation is one that can grow: by one, when a member joins."""
    before = max(group.generations)
    group.add_member()
    assert max(group.generations) == before + 1
