"""Members of a group are killed in the middle of a rebalance, the leader among them, twenty join at once, and
all are replaced at once: soon the others own all partitions, each partition has one owner, and no member that
lives is taken for dead."""

import threading
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import MakeTopic, Run
from tests.jepsen.members import (
    ClassicMember,
    Member,
    MemberKind,
    ModernMember,
    new_group,
    seconds_until_stable,
)
from tests.jepsen.plans import Load
from tests.jepsen.stage import Stage

LOAD = Load(writers=1, pipelining_writers=0, transactional_writers=0, readers=0)
MEMBERS = 20
PARTITIONS = 24
SESSION_MS, REBALANCE_MS = 3000, 4000
# For a machine with other work.
MARGIN_SECONDS = 2.0
KINDS: dict[str, MemberKind] = {"classic": ClassicMember, "consumer": ModernMember}
TAKEN_FOR_DEAD = ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "ILLEGAL_GENERATION")


@pytest.fixture(scope="module")
def shape() -> dict[str, Any]:
    return {"overrides": {"group.consumer.session.timeout.ms": str(SESSION_MS)}}


class Storm:
    """What happens to the members of one group."""

    def __init__(self, stage: Stage, system: FaultyCluster, topic: str, kind: str) -> None:
        self.stage, self.kind = stage, kind
        self.chance = Random(f"{stage.seed}-{kind}")
        self.group = new_group(
            system, f"{stage.name}-{kind}", topic, session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS
        )
        self.members: list[Member] = []
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        self._thread.join()
        for member in self.members:
            member.kill()
        for member in self.members:
            member.wait()
        if self.failure is not None:
            raise AssertionError(f"{self.kind} group: {self.failure}") from self.failure

    def _run(self) -> None:
        try:
            self._add(MEMBERS)
            self._wait_until_stable("twenty have joined", REBALANCE_MS)
            self._kill_some_after_join()
            self._wait_until_stable("some were killed between join and sync", SESSION_MS + REBALANCE_MS)
            for member in self.members:
                member.kill()
            self._add(MEMBERS)
            self._wait_until_stable("all were replaced", SESSION_MS + REBALANCE_MS)
        except BaseException as failure:  # raised by wait(), in the test's thread
            self.failure = failure

    def _add(self, count: int) -> None:
        first = len(self.members)
        added = [KINDS[self.kind](self.group, f"{self.kind}-{first + place}") for place in range(count)]
        self.members += added
        for member in added:
            member.start()

    def _kill_some_after_join(self) -> None:
        """A new member causes a rebalance, in which these die. The leader never assigns the partitions."""
        doomed = set(self.chance.sample(self.members, self.chance.randint(1, 5)))
        doomed |= {member for member in self.members if getattr(member, "is_leader", False)}
        for member in doomed:
            member.dies_after_join = True
        self._add(1)
        self.group.system.wait_until(lambda: not any(each.is_alive for each in doomed), "they have joined")
        self.stage.note(f"{len(doomed)} members of the {self.kind} group are killed between join and sync")

    def _wait_until_stable(self, what: str, timeout_ms: int) -> None:
        seconds = seconds_until_stable(self.members, self.group)
        limit = timeout_ms / 1000 + MARGIN_SECONDS
        self.stage.record_recovery(f"{self.kind} group: stable after {what}", seconds, limit)

    # ---- what must hold

    def check(self) -> None:
        assert not self.group.owners.problems, self.group.owners.problems
        errors = {member.name: mistakes(member.errors) for member in self.members if mistakes(member.errors)}
        assert not errors, f"members that lived were taken for dead: {errors}"


def mistakes(errors: Iterable[str]) -> list[str]:
    return [name for name in errors if name in TAKEN_FOR_DEAD]


def test_members_are_killed_in_the_middle_of_a_rebalance(
    run: Run, system: FaultyCluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(PARTITIONS)
    with run(LOAD) as stage:
        storms = [Storm(stage, system, topic, kind) for kind in KINDS]
        # Members of the libraries are killed, too: with their process.
        stage.bounce_clients()
        for storm in storms:
            storm.wait()
        for storm in storms:
            storm.check()
