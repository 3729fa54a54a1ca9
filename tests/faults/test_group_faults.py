"""Groups whose members or coordinator die at the worst moments."""

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.clients import kafka_python_library as kafka_python
from tests.clients.client import Message, wait_until
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient
from tests.clients.member_process import MemberProcess
from tests.support.raw_calls import Topic, new_topic
from tests.support.raw_client import RawClient
from tests.support.raw_groups import JOIN_GROUP, OFFSET_COMMIT, SYNC_GROUP, RawGroup

from barnabas.errors import ErrorCode
from barnabas.testing import Broker
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.sync_group import SyncGroupRequest

DESCRIBE_GROUPS, LIST_GROUPS = 15, 16
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "1500",
}
# Long enough for a busy machine: only a killed member may time out.
SESSION_MS = 3000
PARTITIONS = 6
PATIENCE_SECONDS = 40.0

Connect = Callable[[], RawClient]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(QUICK, subprocess=True) as broker:
        yield broker
        assert "Traceback" not in broker.output()


@pytest.fixture
def connect(broker: Broker) -> Iterator[Connect]:
    with contextlib.ExitStack() as opened:
        yield lambda: opened.enter_context(RawClient("127.0.0.1", broker.port))


class Joiner:
    """A member with its own connection that joins without waiting for the answer."""

    def __init__(self, connect: Connect, group: str) -> None:
        self.group = RawGroup(connect(), group)
        self.member = ""
        self.joined: Any = None

    def send_join(self) -> None:
        request = self.group.join_request(self.member)
        request.session_timeout_ms = request.rebalance_timeout_ms = SESSION_MS
        self.group.client.send(JOIN_GROUP, 3, request)

    def receive_join(self) -> None:
        _, answer = self.group.client.receive(JOIN_GROUP, 3)
        assert answer.error_code == 0
        self.member, self.joined = answer.member_id, answer

    @property
    def leads(self) -> bool:
        return self.joined.leader == self.member


def _three(connect: Connect, name: str) -> list[Joiner]:
    """Three members of one generation that have joined and not yet synced, the leader first."""
    joiners = [Joiner(connect, name) for _ in range(3)]
    first = joiners[0]
    first.group.find()
    first.send_join()
    first.receive_join()
    for joiner in joiners[1:]:
        joiner.send_join()
    # The first member must not join again before the others have: the rebalance would end without them.
    wait_until(lambda: _member_count(first.group) == 3, "all three members are known")
    first.send_join()
    for joiner in joiners:
        joiner.receive_join()
    generations = {joiner.joined.generation_id for joiner in joiners}
    assert len(generations) == 1
    return sorted(joiners, key=lambda joiner: not joiner.leads)


def _member_count(group: RawGroup) -> int:
    request = DescribeGroupsRequest(groups=[group.name])
    (described,) = group.client.call(DESCRIBE_GROUPS, 5, request).groups
    return len(described.members)


def _finish(joiners: list[Joiner]) -> int:
    """All join again, the leader assigns, and every member gets its part; returns the generation."""
    for joiner in joiners:
        joiner.send_join()
    for joiner in joiners:
        joiner.receive_join()
    (leader,) = [joiner for joiner in joiners if joiner.leads]
    members = [each.member_id for each in leader.joined.members]
    assert sorted(members) == sorted(joiner.member for joiner in joiners)
    plans = {joiner.member: b"part of " + joiner.member.encode() for joiner in joiners}
    for joiner in [leader, *(each for each in joiners if each is not leader)]:
        answer = joiner.group.sync(joiner.joined, plans if joiner is leader else None)
        assert (answer.error_code, answer.assignment) == (0, plans[joiner.member])
    return int(leader.joined.generation_id)


def test_the_leader_dies_between_join_and_sync(connect: Connect) -> None:
    """Its followers wait for an assignment that never comes; they must join again, under a new leader."""
    leader, *followers = _three(connect, "leaderless")
    before = leader.joined.generation_id
    for follower in followers:
        follower.group.client.send(SYNC_GROUP, 3, _sync_request(follower))
    leader.group.client.close()
    for follower in followers:
        _, answer = follower.group.client.receive(SYNC_GROUP, 3)
        assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert _finish(followers) > before


def test_a_follower_dies_between_join_and_sync(connect: Connect) -> None:
    """The others have their parts; the next rebalance has one member less."""
    leader, *followers = _three(connect, "one follower less")
    plans = {joiner.member: b"plan" for joiner in (leader, *followers)}
    assert leader.group.sync(leader.joined, plans).assignment == b"plan"
    assert followers[0].group.sync(followers[0].joined).assignment == b"plan"
    followers[1].group.client.close()
    living = [leader, followers[0]]

    def all_know() -> bool:
        codes = [joiner.group.heartbeat(joiner.joined) for joiner in living]
        assert set(codes) <= {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}
        return set(codes) == {ErrorCode.REBALANCE_IN_PROGRESS}

    wait_until(all_know, "all members know that one is dead")
    _finish(living)


def _sync_request(joiner: Joiner) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=joiner.group.name,
        generation_id=joiner.joined.generation_id,
        member_id=joiner.member,
    )


@pytest.mark.parametrize("moment", ["before the sync", "after the sync"])
def test_the_broker_dies_in_the_middle_of_a_rebalance(broker: Broker, connect: Connect, moment: str) -> None:
    """What was not journaled is forgotten, what was journaled is kept, and all members join again."""
    leader, *followers = _three(connect, "restarted")
    everybody = [leader, *followers]
    plans = {joiner.member: b"plan of " + joiner.member.encode() for joiner in everybody}
    if moment == "after the sync":
        for joiner in everybody:
            assert joiner.group.sync(joiner.joined, plans if joiner is leader else None).error_code == 0
    broker.kill()
    broker.restart()
    for joiner in everybody:
        joiner.group.client = connect()
    leader.group.find()
    codes = {joiner.group.heartbeat(joiner.joined) for joiner in everybody}
    if moment == "after the sync":
        assert codes == {ErrorCode.NONE}
        for joiner in everybody:
            assert joiner.group.sync(joiner.joined).assignment == plans[joiner.member]
        return
    assert codes <= {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
    }
    for joiner in everybody:
        joiner.member = ""
    fresh = _three(connect, "restarted")
    _finish(fresh)


def test_no_acknowledged_commit_is_lost_when_the_coordinator_dies(broker: Broker, connect: Connect) -> None:
    """Kill -9 while commits are in flight; the group is listed once in any case."""
    chance = random.Random(33)
    client = connect()
    topic = new_topic(client)
    group = RawGroup(client, "committing")
    group.find()
    sent = -1
    for _ in range(6):
        for _ in range(chance.randint(0, 60)):
            sent += 1
            assert group.commit(topic, sent, f"number {sent}") == 0
        acknowledged = sent
        # The last commit is in flight, and its answer is never read.
        sent += 1
        group.client.send(OFFSET_COMMIT, 8, _commit_request(group, topic, sent))
        broker.kill()
        broker.restart()
        group.client = connect()
        group.find()
        committed = group.fetch(topic)
        assert acknowledged <= committed.committed_offset <= sent
        assert committed.metadata == f"number {committed.committed_offset}"
        listed = [each.group_id for each in group.client.call(LIST_GROUPS, 5, ListGroupsRequest()).groups]
        assert listed == ["committing"]


def _commit_request(group: RawGroup, topic: Topic, offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=f"number {offset}"
    )
    named = OffsetCommitRequestTopic(name=topic.name, partitions=[partition])
    return OffsetCommitRequest(group_id=group.name, topics=[named])


def test_a_fenced_instance_stays_fenced_over_a_restart(broker: Broker, connect: Connect) -> None:
    """Two members with one instance id, and the broker dies: the older one stays fenced, and the
    assignment is kept."""
    older, newer = RawGroup(connect(), "static"), RawGroup(connect(), "static")
    older.find()
    first = older.join(version=5, instance="twin")
    assert older.sync(first, {first.member_id: b"the plan"}).assignment == b"the plan"
    second = newer.join(version=5, instance="twin")
    assert (second.error_code, second.generation_id) == (0, first.generation_id)
    assert second.member_id != first.member_id
    for _ in range(2):
        assert older.heartbeat(first, instance="twin") == ErrorCode.FENCED_INSTANCE_ID
        assert newer.heartbeat(second, instance="twin") == 0
        assert newer.sync(second).assignment == b"the plan"
        broker.kill()
        broker.restart()
        older.client, newer.client = connect(), connect()
        older.find()


@pytest.mark.parametrize(
    ("assignor", "protocol"),
    [("range", "classic"), ("cooperative-sticky", "classic"), ("uniform", "consumer")],
)
def test_members_and_broker_are_killed_all_the_time(
    broker: Broker, tmp_path: Path, assignor: str, protocol: str
) -> None:
    """Afterwards each partition has one owner, each record was consumed, and no offset went back."""
    chance = random.Random(f"{assignor} {protocol}")
    ConfluentAdmin(broker.bootstrap).create_topic("shared", PARTITIONS)
    producer = ConfluentClient(broker.bootstrap)
    arguments = (broker.bootstrap, "victims", "shared", assignor, protocol)
    living: list[MemberProcess] = []
    everyone: list[MemberProcess] = []
    committed: dict[int, int] = {}

    def start(count: int) -> None:
        for _ in range(count):
            living.append(MemberProcess(tmp_path, str(len(everyone)), *arguments))
            everyone.append(living[-1])

    try:
        for turn in range(3):
            start(4 - len(living))
            producer.produce(
                "shared", [Message(b"x", partition=number) for number in range(PARTITIONS) for _ in range(20)]
            )
            time.sleep(chance.uniform(0.4, 1.6))
            for victim in chance.sample(living, 2):
                victim.kill()
                living.remove(victim)
            if turn == 1:
                broker.kill()
                broker.restart()
            committed = _not_behind(broker.bootstrap, committed)
        start(1)

        def is_settled() -> bool:
            owned = sorted(number for member in living for number in member.owned)
            return owned == list(range(PARTITIONS)) and all(member.owned for member in living)

        expected = {(partition, offset) for partition in range(PARTITIONS) for offset in range(60)}
        wait_until(
            lambda: expected <= {place for member in everyone for place in member.seen},
            "every record is consumed",
            PATIENCE_SECONDS,
        )
        done = dict.fromkeys(range(PARTITIONS), 60)
        wait_until(
            lambda: _not_behind(broker.bootstrap, committed) == done,
            "all is committed",
            PATIENCE_SECONDS,
        )
        wait_until(is_settled, "three members share the partitions", PATIENCE_SECONDS)
    finally:
        for member in everyone:
            member.kill()


def _not_behind(bootstrap: str, before: dict[int, int]) -> dict[int, int]:
    """The committed offsets; none is lower than before."""
    admin = kafka_python.KafkaAdminClient(bootstrap_servers=bootstrap)
    found: list[Any] = []

    def are_found() -> bool:
        # This client does not ask again if the coordinator has just begun to be one.
        with contextlib.suppress(kafka_python.errors.NotCoordinatorError):
            found.append(admin.list_group_offsets({"victims": None})["victims"])
        return bool(found)

    try:
        wait_until(are_found, "the coordinator has the offsets", PATIENCE_SECONDS)
    finally:
        admin.close()
    (committed,) = found
    offsets = {place.partition: int(value.offset) for place, value in committed.items()}
    assert all(offsets[partition] >= offset for partition, offset in before.items())
    return offsets
