"""Committed offsets that are not needed any more: how long a broker keeps them, and that they stay deleted.

BARNABAS_TEST_BOOTSTRAP=127.0.0.1:port runs the tests without a fake clock on another broker, for example at
Apache Kafka with a short offsets.retention.check.interval.ms."""

import os
import struct
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.clients.client import wait_until
from tests.support.raw_calls import Topic, new_topic
from tests.support.raw_client import RawClient
from tests.support.raw_groups import JOIN_GROUP, RawGroup

from barnabas.clock import FakeClock
from barnabas.errors import ErrorCode
from barnabas.testing import Broker
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.list_groups import ListGroupsRequest

LIST_GROUPS, DELETE_TOPICS, CONSUMER_GROUP_HEARTBEAT = 16, 20, 68
FOREIGN_BOOTSTRAP = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
CHECKED_OFTEN = {"offsets.retention.check.interval.ms": "100", "offsets.topic.num.partitions": "1"}
RETENTION_MS = 60_000
NONE = -1

Connect = Callable[[], RawClient]


def unique(what: str) -> str:
    return f"{what}-{uuid.uuid4().hex}"


def group_of(client: RawClient, what: str) -> RawGroup:
    group = RawGroup(client, unique(what))
    group.find()
    return group


def exists(group: RawGroup) -> bool:
    answer = group.client.call(LIST_GROUPS, 5, ListGroupsRequest())
    assert answer.error_code == 0
    return group.name in {listed.group_id for listed in answer.groups}


def commit(group: RawGroup, topic: Topic, offset: int, **how: Any) -> None:
    """Apache Kafka may take a moment to know a new topic."""
    codes: list[int] = []

    def is_known() -> bool:
        codes.append(group.commit(topic, offset, **how))
        return codes[-1] != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    wait_until(is_known, "the topic is known")
    assert codes[-1] == 0


def offset_of(group: RawGroup, topic: Topic) -> int:
    return int(group.fetch(topic).committed_offset)


def stable_member(group: RawGroup, *topics: Topic) -> Any:
    """The only member of a classic group, which reads these topics."""
    names = [struct.pack(">h", len(topic.name)) + topic.name.encode() for topic in topics]
    request = group.join_request()
    request.protocols[0].metadata = struct.pack(">hi", 0, len(names)) + b"".join(names) + bytes(4)
    joined = group.client.call(JOIN_GROUP, 3, request)
    assert group.sync(joined, {joined.member_id: b""}).error_code == 0
    return joined


# ---- with a fake clock


class Stage:
    def __init__(self, directory: Path) -> None:
        self.clock = FakeClock()
        overrides = {**CHECKED_OFTEN, "offsets.retention.minutes": "1"}
        self.broker = Broker(overrides, data_dir=directory, clock=self.clock).start()
        self.client = RawClient("127.0.0.1", self.broker.port)

    def close(self) -> None:
        self.client.close()
        self.broker.stop()

    def restart(self, *groups: RawGroup) -> None:
        self.close()
        self.broker.start()
        self.client = RawClient("127.0.0.1", self.broker.port)
        for group in groups:
            group.client = self.client
            group.find()

    def pass_time(self, topic: Topic, duration_ms: int) -> None:
        """Let time pass, and wait until the broker has removed what is due.

        An offset of another group, which is due at that time, shows that it has."""
        witness = group_of(self.client, "witness")
        commit(witness, topic, 1, version=4, retention_time_ms=duration_ms)
        self.clock.advance(duration_ms)
        wait_until(lambda: not exists(witness), "the broker has removed what is due")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    if FOREIGN_BOOTSTRAP:
        pytest.skip("another broker's clock is not ours")
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def test_offsets_are_kept_for_the_retention_after_the_group_is_empty(stage: Stage) -> None:
    topic = new_topic(stage.client)
    group = group_of(stage.client, "classic")
    joined = stable_member(group, topic)
    member = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id}
    commit(group, topic, 7, **member)
    stage.pass_time(topic, 5 * RETENTION_MS)
    assert offset_of(group, topic) == 7
    group.leave(joined.member_id)
    stage.pass_time(topic, RETENTION_MS - 1)
    assert offset_of(group, topic) == 7
    stage.restart(group)
    assert offset_of(group, topic) == 7
    stage.pass_time(topic, 1)
    assert (exists(group), offset_of(group, topic)) == (False, NONE)
    stage.restart(group)
    assert (exists(group), offset_of(group, topic)) == (False, NONE)


def test_a_stable_group_loses_what_it_no_longer_reads(stage: Stage) -> None:
    read, unread = new_topic(stage.client), new_topic(stage.client)
    group = group_of(stage.client, "classic")
    joined = stable_member(group, read)
    member = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id}
    commit(group, read, 7, **member)
    commit(group, unread, 8, **member)
    stage.pass_time(read, RETENTION_MS - 1)
    assert (offset_of(group, read), offset_of(group, unread)) == (7, 8)
    stage.pass_time(read, 1)
    assert (offset_of(group, read), offset_of(group, unread)) == (7, NONE)
    assert group.heartbeat(joined) == 0
    group.leave(joined.member_id)


def test_offsets_of_simple_consumers_count_from_their_commit(stage: Stage) -> None:
    topic = new_topic(stage.client)
    group = group_of(stage.client, "simple")
    commit(group, topic, 7)
    stage.pass_time(topic, RETENTION_MS - 1)
    assert offset_of(group, topic) == 7
    commit(group, topic, 8)
    stage.pass_time(topic, RETENTION_MS - 1)
    assert offset_of(group, topic) == 8
    stage.pass_time(topic, 1)
    assert (exists(group), offset_of(group, topic)) == (False, NONE)


def test_a_group_of_the_new_protocol_loses_what_nobody_reads(stage: Stage) -> None:
    read, unread = new_topic(stage.client), new_topic(stage.client)
    group = group_of(stage.client, "consumer")

    def beat(epoch: int, **fields: Any) -> int:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group.name, member_id="member", member_epoch=epoch, **fields
        )
        answer = stage.client.call(CONSUMER_GROUP_HEARTBEAT, 1, request)
        assert answer.error_code == 0
        return int(answer.member_epoch)

    joining = {"rebalance_timeout_ms": 60_000, "topic_partitions": []}
    epoch = beat(0, subscribed_topic_names=[read.name], **joining)
    member = {"member_id": "member", "generation_id_or_member_epoch": epoch}
    commit(group, read, 7, version=9, **member)
    commit(group, unread, 8, version=9, **member)
    stage.pass_time(read, RETENTION_MS)
    assert (offset_of(group, read), offset_of(group, unread)) == (7, NONE)
    beat(-1)
    # Nobody reads it now, and it is old enough.
    stage.pass_time(read, 1)
    assert (exists(group), offset_of(group, read)) == (False, NONE)
    stage.restart(group)
    assert (exists(group), offset_of(group, read)) == (False, NONE)


# ---- in real time, with a broker that is killed


class Server:
    def __init__(self, broker: Broker | None) -> None:
        self._broker = broker
        self._opened = ExitStack()

    def connect(self) -> RawClient:
        port = self._broker.port if self._broker else int((FOREIGN_BOOTSTRAP or "").rpartition(":")[2])
        return self._opened.enter_context(RawClient("127.0.0.1", port))

    def crash(self, *groups: RawGroup) -> None:
        """kill -9 and start again, unless it is somebody else's broker."""
        if self._broker is None:
            return
        self._broker.kill()
        self._broker.restart()
        for group in groups:
            group.client = self.connect()
            group.find()

    def close(self) -> None:
        self._opened.close()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker | None]:
    if FOREIGN_BOOTSTRAP:
        yield None
        return
    with Broker(CHECKED_OFTEN, subprocess=True) as broker:
        yield broker
        assert "Traceback" not in broker.output()


@pytest.fixture
def server(broker: Broker | None) -> Iterator[Server]:
    server = Server(broker)
    yield server
    server.close()


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_old_client_says_how_long_its_offsets_are_kept(server: Server, version: int) -> None:
    client = server.connect()
    topic = new_topic(client)
    short, long = group_of(client, "short"), group_of(client, "long")
    commit(long, topic, 8, version=version, retention_time_ms=600_000)
    commit(short, topic, 7, version=version, retention_time_ms=1)
    wait_until(lambda: not exists(short), "the group is gone")
    assert (offset_of(short, topic), offset_of(long, topic)) == (NONE, 8)
    server.crash(short, long)
    assert (exists(short), offset_of(short, topic)) == (False, NONE)
    assert (exists(long), offset_of(long, topic)) == (True, 8)


def test_a_member_keeps_the_offsets_of_what_it_reads(server: Server) -> None:
    client = server.connect()
    topic, other = new_topic(client), new_topic(client)
    group = group_of(client, "classic")
    joined = stable_member(group, topic)
    how = {
        "member_id": joined.member_id,
        "generation_id_or_member_epoch": joined.generation_id,
        "version": 4,
        "retention_time_ms": 1,
    }
    commit(group, topic, 7, **how)
    commit(group, other, 8, **how)
    wait_until(
        lambda: group.heartbeat(joined) == 0 and offset_of(group, other) == NONE,
        "what it does not read is gone",
    )
    assert offset_of(group, topic) == 7
    group.leave(joined.member_id)
    wait_until(lambda: not exists(group), "the group is gone")
    assert offset_of(group, topic) == NONE
    server.crash(group)
    assert (exists(group), offset_of(group, topic)) == (False, NONE)


def test_offsets_go_with_their_topic(server: Server) -> None:
    client = server.connect()
    gone, kept = new_topic(client), new_topic(client)
    only_gone, both = group_of(client, "one"), group_of(client, "two")
    commit(only_gone, gone, 7)
    commit(both, gone, 7)
    commit(both, kept, 8)
    deleting = DeleteTopicsRequest(topics=[DeleteTopicState(name=gone.name)], timeout_ms=20_000)
    assert client.call(DELETE_TOPICS, 6, deleting).responses[0].error_code == 0
    wait_until(lambda: offset_of(both, gone) == NONE, "its offsets are gone")
    # A group that is left without offsets and members goes, too.
    wait_until(lambda: not exists(only_gone), "the group is gone")
    server.crash(only_gone, both)
    new_topic(both.client, name=gone.name)
    assert (offset_of(both, gone), offset_of(both, kept)) == (NONE, 8)
    assert not exists(only_gone)
