"""Two members have the same group.instance.id. In a classic group the newer one takes over the partitions
without a rebalance, and the older one gets FENCED_INSTANCE_ID. In a group of KIP-848 the newer one gets
UNRELEASED_INSTANCE_ID until the older one has left. All of this stays over a change of the coordinator."""

from random import Random
from typing import Any

import pytest
from tests.jepsen.clients import library
from tests.jepsen.clients.base import Group, OperationError, Reader
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import MakeTopic, Run
from tests.jepsen.faults import GroupCoordinator, Killed, Restarted
from tests.jepsen.members import (
    ClassicMember,
    GroupUnderTest,
    Member,
    MemberKind,
    ModernMember,
    new_group,
    seconds_until_stable,
)
from tests.jepsen.plans import Load
from tests.jepsen.probes import client_of
from tests.jepsen.stage import Stage
from tests.support.raw_client import RawClient

from barnabas.errors import ErrorCode
from barnabas.wire.messages.consumer_group_heartbeat import API_KEY as CONSUMER_GROUP_HEARTBEAT
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.heartbeat import API_KEY as HEARTBEAT
from barnabas.wire.messages.heartbeat import HeartbeatRequest

pytestmark = pytest.mark.faults

LOAD = Load(writers=1, pipelining_writers=0, transactional_writers=0, readers=0)
PARTITIONS = 6
MEMBERS = 3
# Nobody is missed while the coordinator changes.
SESSION_MS, REBALANCE_MS = 20_000, 5000
LEAVES_FOR_A_WHILE = -2


@pytest.fixture(scope="module")
def shape() -> dict[str, Any]:
    return {"overrides": {"group.consumer.session.timeout.ms": str(SESSION_MS)}}


class Scene:
    """A group of static members, and their assignment, which must not change."""

    def __init__(self, stage: Stage, system: FaultyCluster, topic: str, kind: MemberKind) -> None:
        self.stage, self.system, self._kind = stage, system, kind
        self.chance = Random(stage.seed)
        self.group: GroupUnderTest = new_group(
            system, f"{stage.name}-static", topic, session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS
        )
        self.all: list[Member] = []
        self.members = {name: self.start(name) for name in (f"instance-{n}" for n in range(MEMBERS))}
        seconds_until_stable(list(self.members.values()), self.group)
        self.generation = next(iter(self.members.values())).generation
        self.assignment = self.owned()

    def start(self, name: str) -> Member:
        member = self._kind(self.group, name, instance=name).start()
        self.all.append(member)
        return member

    def owned(self) -> dict[str, frozenset[int]]:
        return {name: member.owned for name, member in self.members.items()}

    def check(self) -> None:
        """Everybody has what it had, and no rebalance has happened."""
        seconds_until_stable(list(self.members.values()), self.group)
        assert self.owned() == self.assignment
        assert {member.generation for member in self.members.values()} == {self.generation}
        assert not self.group.owners.problems, self.group.owners.problems

    def change_coordinator(self) -> None:
        """To another broker, or to a new process of the same one; then back to work."""
        role = GroupCoordinator(self.group.name)
        change = self.chance.choice(
            (
                Killed(self.system, role),
                Restarted(self.system, role, clean=True),
                Restarted(self.system, role, clean=False),
            )
        )
        with self.stage.fault(change):
            self.check()
        self.check()

    def connected(self) -> RawClient:
        (coordinator,) = GroupCoordinator(self.group.name).find(self.system)
        return client_of(self.system, coordinator)

    def close(self) -> None:
        for member in self.all:
            member.kill()
        for member in self.all:
            member.wait()


def test_a_classic_group(run: Run, system: FaultyCluster, make_topic: MakeTopic) -> None:
    topic = make_topic(PARTITIONS)
    with run(LOAD) as stage:
        scene = Scene(stage, system, topic, ClassicMember)
        try:
            name = scene.chance.choice(list(scene.members))
            old = replaced(scene, name)
            scene.change_coordinator()
            # The older one is still refused, and can be replaced again.
            assert heartbeat(scene, old) == ErrorCode.FENCED_INSTANCE_ID
            replaced(scene, scene.chance.choice(list(scene.members)))
            assert [member.errors["UNKNOWN_MEMBER_ID"] for member in scene.all] == [0] * len(scene.all)
        finally:
            scene.close()
        for name in ("ours", "confluent"):
            check_library(system, topic, name)


def replaced(scene: Scene, name: str) -> Member:
    """Another member takes the name; returns the older one."""
    old = scene.members[name]
    scene.members[name] = scene.start(name)
    scene.system.wait_until(lambda: old.is_fenced, f"the older {name} is fenced")
    scene.check()
    return old


def heartbeat(scene: Scene, member: Member) -> int:
    request = HeartbeatRequest(
        group_id=scene.group.name,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance,
    )
    with scene.connected() as client:
        return int(client.call(HEARTBEAT, 4, request).error_code)


def check_library(system: FaultyCluster, topic: str, name: str) -> None:
    """Consumers of a library: the older one is told why it has lost its partitions."""
    group = Group(f"{topic}-{name}", instance_id="instance")
    older, newer = (library(name).reader(system.bootstrap, f"{name}-{n}", group) for n in (1, 2))
    try:
        assigned(system, older, topic)
        assigned(system, newer, topic)
        assert "fenced" in refusal(system, older).lower()
        newer.poll(0.1)
        assert len(newer.assignment()) == PARTITIONS
    finally:
        older.abandon()
        newer.close()


def assigned(system: FaultyCluster, reader: Reader, topic: str) -> None:
    reader.subscribe([topic])

    def is_assigned() -> bool:
        reader.poll(0.1)
        return len(reader.assignment()) == PARTITIONS

    system.wait_until(is_assigned, "the reader has all partitions")


def refusal(system: FaultyCluster, reader: Reader) -> str:
    refusals: list[str] = []

    def is_refused() -> bool:
        try:
            reader.poll(0.1)
        except OperationError as error:
            refusals.append(str(error))
        return bool(refusals)

    system.wait_until(is_refused, "the reader is refused")
    return refusals[0]


def test_a_group_of_the_consumer_protocol(run: Run, system: FaultyCluster, make_topic: MakeTopic) -> None:
    topic = make_topic(PARTITIONS)
    with run(LOAD) as stage:
        scene = Scene(stage, system, topic, ModernMember)
        try:
            name = scene.chance.choice(list(scene.members))
            old = scene.members[name]
            twin = scene.start(name)
            refused(scene, twin)
            scene.change_coordinator()
            refused(scene, twin)
            assert old.errors["UNKNOWN_MEMBER_ID"] == old.errors["FENCED_MEMBER_EPOCH"] == 0
            leave_for_a_while(scene, old)
            scene.members[name] = twin
            scene.check()
        finally:
            scene.close()


def refused(scene: Scene, twin: Member) -> None:
    """The newer member is refused again, and the others do not notice it."""
    before = twin.errors["UNRELEASED_INSTANCE_ID"]
    scene.system.wait_until(
        lambda: twin.errors["UNRELEASED_INSTANCE_ID"] > before, "the newer member is refused"
    )
    assert not twin.owned
    scene.check()


def leave_for_a_while(scene: Scene, member: Member) -> None:
    """As a static member does that will be back: its partitions stay with its name."""
    member.kill()
    request = ConsumerGroupHeartbeatRequest(
        group_id=scene.group.name,
        member_id=member.member_id,
        member_epoch=LEAVES_FOR_A_WHILE,
        instance_id=member.instance,
        topic_partitions=[],
    )
    with scene.connected() as client:
        assert client.call(CONSUMER_GROUP_HEARTBEAT, 1, request).error_code == 0
