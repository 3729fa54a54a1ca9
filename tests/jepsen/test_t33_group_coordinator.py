"""The coordinator of groups is killed while members join and offsets are committed: no acknowledged offset is
lost, the members go on at the next coordinator, and each group is listed once."""

import threading
from collections import Counter
from random import Random
from typing import Any

import pytest
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import MakeTopic, Run
from tests.jepsen.faults import Brokers, GroupCoordinator, HeldRequests, Killed
from tests.jepsen.members import (
    ClassicMember,
    GroupUnderTest,
    Member,
    ModernMember,
    new_group,
    seconds_until_stable,
)
from tests.jepsen.network import JOIN_GROUP, OFFSET_COMMIT, Which
from tests.jepsen.plans import Load
from tests.jepsen.probes import client_of
from tests.jepsen.stage import Stage
from tests.support.raw_calls import Topic
from tests.support.raw_client import RawClient
from tests.support.raw_groups import RawGroup

from barnabas.errors import error_of
from barnabas.wire.messages.consumer_group_heartbeat import API_KEY as CONSUMER_GROUP_HEARTBEAT
from barnabas.wire.messages.list_groups import API_KEY as LIST_GROUPS
from barnabas.wire.messages.list_groups import ListGroupsRequest

pytestmark = pytest.mark.faults

LOAD = Load(writers=1, pipelining_writers=1, transactional_writers=0, readers=0, classic_groups=2)
PARTITIONS = 6
MEMBERS = 5
SESSION_MS, REBALANCE_MS = 6000, 6000
# What a client is told while another broker takes over.
EXPECTED = {"NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "disconnected"}
REJOIN = {"REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_MEMBER_EPOCH"}


class Committer:
    """Commits 1, 2, 3 ... for a group without members, and looks after each commit what is committed."""

    def __init__(self, system: FaultyCluster, group: str, topic: str) -> None:
        self._system = system
        self.group, self._topic = group, Topic(topic, bytes(16))
        self.acknowledged, self.errors = 0, Counter[str]()
        self.failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                (coordinator,) = GroupCoordinator(self.group).find(self._system)
                try:
                    with client_of(self._system, coordinator) as client:
                        self._commit_all(RawGroup(client, self.group))
                except OSError:
                    self.errors["disconnected"] += 1
        except BaseException as failure:  # raised by stop(), in the test's thread
            self.failure = failure

    def _commit_all(self, group: RawGroup) -> None:
        """Until the coordinator is another one."""
        while not self._stopping.wait(0.005):
            code, found = group.committed(self._topic)
            if self._is_refused(code):
                return
            offset = max(found, 0)
            assert offset >= self.acknowledged, f"committed was {self.acknowledged}, and is {offset}"
            if self._is_refused(group.commit(self._topic, offset + 1)):
                return
            self.acknowledged = offset + 1

    def _is_refused(self, code: int) -> bool:
        if code:
            self.errors[error_of(code).name] += 1
            self._stopping.wait(0.05)
        return code != 0

    def wait_for(self, count: int) -> None:
        target = self.acknowledged + count
        self._system.wait_until(
            lambda: self.acknowledged >= target or self.failure is not None, f"{count} more offsets"
        )
        self.check()

    def check(self) -> None:
        if self.failure is not None:
            raise AssertionError(f"{self.group}: {self.failure}") from self.failure
        assert set(self.errors) <= EXPECTED, self.errors

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self.check()


class Scene:
    """Groups whose coordinator is the same broker."""

    def __init__(self, stage: Stage, system: FaultyCluster, topic: str) -> None:
        self.stage, self.system, self.topic = stage, system, topic
        self.committer = Committer(system, f"{stage.name}-committer", topic)
        (self.coordinator,) = GroupCoordinator(self.committer.group).find(system)
        kinds = {"classic": ClassicMember, "consumer": ModernMember}
        self.groups = {kind: self._group(kind) for kind in kinds}
        self.members: dict[str, list[Member]] = {kind: [] for kind in kinds}
        self._kinds = kinds

    def _group(self, kind: str) -> GroupUnderTest:
        names = (f"{self.stage.name}-raw-{kind}-{number}" for number in range(1000))
        name = next(each for each in names if GroupCoordinator(each).find(self.system) == [self.coordinator])
        return new_group(self.system, name, self.topic, session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS)

    def add_members(self) -> None:
        for kind, group in self.groups.items():
            first = len(self.members[kind])
            for number in range(first, first + MEMBERS):
                self.members[kind].append(self._kinds[kind](group, f"{kind}-{number}").start())

    def wait_until_stable(self, what: str) -> None:
        limit = self.stage.recovery_seconds_max + REBALANCE_MS / 1000
        for kind, group in self.groups.items():
            seconds = seconds_until_stable(self.members[kind], group)
            self.stage.record_recovery(f"{kind} group: stable after {what}", seconds, limit)

    def close(self) -> None:
        members = [member for each in self.members.values() for member in each]
        for member in members:
            member.kill()
        for member in members:
            member.wait()
            assert set(member.errors) <= EXPECTED | REJOIN, member.errors
        self.committer.stop()
        for group in self.groups.values():
            assert not group.owners.problems, group.owners.problems

    def check_listed(self) -> None:
        """Each group by one broker."""
        names = {group.name for group in self.groups.values()} | {self.committer.group}
        names |= {group.id for group in self.stage.load.groups(self.stage.name)}

        def are_listed() -> bool:
            listed = listed_groups(self.system)
            twice = [name for name, count in listed.items() if count > 1]
            assert not twice, f"listed by two brokers, or twice by one: {twice}"
            return names <= set(listed)

        self.system.wait_until(are_listed, f"the groups {names} are listed")


def listed_groups(system: FaultyCluster) -> Counter[str]:
    """How often each group is listed."""
    listed: Counter[str] = Counter()
    for broker in system.brokers.values():
        if broker.is_answering:
            with RawClient("127.0.0.1", broker.port) as client:
                answer = client.call(LIST_GROUPS, 4, ListGroupsRequest())
            listed.update(group.group_id for group in answer.groups)
    return listed


# What is held back at the moment of the kill. None: whatever is under way is in the middle of its work.
MOMENTS = {
    "join": (JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT, None),
    "commit": (OFFSET_COMMIT, None),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_coordinator_is_killed(
    run: Run, system: FaultyCluster, make_topic: MakeTopic, moment: str
) -> None:
    topic = make_topic(PARTITIONS)
    with run(LOAD) as stage:
        chance = Random(f"{stage.seed}-{moment}")
        scene = Scene(stage, system, topic)
        try:
            scene.add_members()
            scene.wait_until_stable("the first have joined")
            scene.committer.wait_for(20)
            fault = Killed(system, Brokers(scene.coordinator))
            api_key = chance.choice(MOMENTS[moment])
            held: Any = None if api_key is None else HeldRequests(system, Which(api_key))
            if held is not None:
                held.inject()
            if moment == "join":
                scene.add_members()
                stage.bounce_clients()
            if held is not None:
                held.hold.wait()
            else:
                stage.run(chance.uniform(0.0, 0.5))
            with stage.fault(fault):
                if held is not None:
                    held.heal()
                stage.note(f"requests that were held: {held}")
                scene.committer.wait_for(20)
                scene.wait_until_stable("the coordinator was killed")
                scene.check_listed()
            scene.check_listed()
            scene.committer.wait_for(20)
            scene.wait_until_stable("it was started again")
        finally:
            scene.close()
