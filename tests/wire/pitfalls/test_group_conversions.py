"""Pitfalls 9 and 24: a group with classic members changes to the new protocol and back."""

import struct
import uuid
from typing import Any

import pytest
from tests.clients.client import wait_until
from tests.support.raw_calls import Topic, new_topic
from tests.support.raw_client import RawClient
from tests.support.raw_groups import JOIN_GROUP, RawGroup

from barnabas.errors import ErrorCode
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from barnabas.wire.messages.list_groups import ListGroupsRequest

LIST_GROUPS, CONSUMER_GROUP_HEARTBEAT = 16, 68
PARTITIONS = [0, 1, 2, 3]
E = ErrorCode


def _listed(topic: Topic, partitions: list[int]) -> bytes:
    """One topic with partitions, in the form of subscriptions and assignments."""
    name = struct.pack(">h", len(topic.name)) + topic.name.encode()
    return struct.pack(">i", 1) + name + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)


def _assigned(data: bytes) -> list[int]:
    """The partitions of an assignment of one topic, or of none."""
    topics, length = struct.unpack_from(">xxih", data) if len(data) >= 8 else (0, 0)
    if not topics:
        return []
    (count,) = struct.unpack_from(">i", data, 8 + length)
    return sorted(struct.unpack_from(f">{count}i", data, 12 + length))


class Classic:
    def __init__(self, group: RawGroup, topic: Topic) -> None:
        self._group, self._topic = group, topic
        self.joined: Any = None
        self.owned: list[int] = []

    def join(self) -> None:
        name = struct.pack(">h", len(self._topic.name)) + self._topic.name.encode()
        owned = _listed(self._topic, self.owned) if self.owned else bytes(4)
        request = self._group.join_request("" if self.joined is None else self.joined.member_id)
        request.protocols[0].metadata = struct.pack(">hi", 1, 1) + name + bytes(4) + owned
        self.joined = self._group.client.call(JOIN_GROUP, 3, request)
        assert self.joined.error_code == 0

    def sync(self, plan: list[int] | None = None) -> int:
        """With `plan` it becomes the leader of its own group."""
        assignment = None
        if plan is not None:
            data = struct.pack(">h", 1) + _listed(self._topic, plan) + bytes(4)
            assignment = {self.joined.member_id: data}
        answer = self._group.sync(self.joined, assignment, version=3)
        if answer.error_code == 0:
            self.owned = _assigned(answer.assignment)
        return int(answer.error_code)

    def beat(self) -> int:
        return self._group.heartbeat(self.joined)

    def follow(self) -> None:
        if self.beat() == E.REBALANCE_IN_PROGRESS:
            self.join()
            self.sync()

    def commit(self) -> int:
        member = {
            "member_id": self.joined.member_id,
            "generation_id_or_member_epoch": self.joined.generation_id,
        }
        return self._group.commit(self._topic, 7, **member)


class New:
    """It reports what it owns, and immediately releases what it must not have."""

    def __init__(self, group: RawGroup, topic: Topic) -> None:
        self._group, self._topic = group, topic
        self.epoch = 0
        self.owned: list[int] = []

    def beat(self, epoch: int | None = None) -> int:
        listed = [TopicPartitions(topic_id=self._topic.id, partitions=self.owned)] if self.owned else []
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group.name,
            member_id="new",
            member_epoch=self.epoch if epoch is None else epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[self._topic.name],
            topic_partitions=listed,
        )
        answer = self._group.client.call(CONSUMER_GROUP_HEARTBEAT, 1, request)
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = [number for each in answer.assignment.topic_partitions for number in each.partitions]
        return int(answer.error_code)


def kind(group: RawGroup) -> tuple[str, str]:
    listed = group.client.call(LIST_GROUPS, 5, ListGroupsRequest()).groups
    return next((each.group_type, each.group_state) for each in listed if each.group_id == group.name)


@pytest.fixture
def topic(client: RawClient) -> Topic:
    return new_topic(client, partitions=len(PARTITIONS))


@pytest.fixture
def group(client: RawClient) -> RawGroup:
    group = RawGroup(client, f"converted-{uuid.uuid4().hex}")
    group.find()
    return group


def _stable(group: RawGroup, topic: Topic) -> Classic:
    classic = Classic(group, topic)
    classic.join()
    assert classic.sync(PARTITIONS) == 0
    wait_until(lambda: classic.commit() == 0, "the topic is known")
    return classic


def test_9_24_up_and_down_again(group: RawGroup, topic: Topic) -> None:
    classic = _stable(group, topic)
    new = New(group, topic)
    assert new.beat() == 0
    assert kind(group)[0] == "consumer"
    # It continues to read and commit until it gets the error and joins again.
    assert classic.beat() == E.REBALANCE_IN_PROGRESS
    assert classic.sync() == E.REBALANCE_IN_PROGRESS
    assert classic.commit() == 0

    def is_shared() -> bool:
        classic.follow()
        assert new.beat() == 0
        assert not set(classic.owned) & set(new.owned)
        return len(classic.owned) == len(new.owned) == 2 and kind(group)[1] == "Stable"

    wait_until(is_shared, "both have their part")
    assert sorted(classic.owned + new.owned) == PARTITIONS
    assert classic.beat() == classic.commit() == 0

    assert new.beat(-1) == 0
    wait_until(lambda: kind(group) == ("classic", "PreparingRebalance"), "all are to join again")
    assert classic.beat() == E.REBALANCE_IN_PROGRESS
    assert classic.commit() == 0
    assert new.beat() == E.GROUP_ID_NOT_FOUND
    classic.join()
    assert classic.joined.leader == classic.joined.member_id
    assert classic.sync(PARTITIONS) == classic.beat() == 0
    assert kind(group) == ("classic", "Stable")
    group.leave(classic.joined.member_id)


def test_9_24_a_classic_member_joins_the_new_protocol(group: RawGroup, topic: Topic) -> None:
    new, classic = New(group, topic), Classic(group, topic)

    def has_all() -> bool:
        assert new.beat() == 0
        return sorted(new.owned) == PARTITIONS

    wait_until(has_all, "it has everything")
    classic.join()
    assert (classic.joined.leader, classic.joined.members) == ("", [])
    classic.sync()

    def is_shared() -> bool:
        classic.follow()
        assert new.beat() == 0
        return len(classic.owned) == len(new.owned) == 2

    wait_until(is_shared, "both have their part")
    assert kind(group)[0] == "consumer"
    group.leave(classic.joined.member_id)
    wait_until(has_all, "it has everything again")
    assert new.beat(-1) == 0
    assert kind(group) == ("consumer", "Empty")


def test_9_24_a_group_of_others_is_not_converted(group: RawGroup, topic: Topic) -> None:
    request = group.join_request()
    request.protocol_type = "connect"
    joined = group.client.call(JOIN_GROUP, 3, request)
    assert group.sync(joined, {joined.member_id: b""}, version=3).error_code == 0
    assert New(group, topic).beat() == E.GROUP_ID_NOT_FOUND
    assert kind(group) == ("classic", "Stable")
    group.leave(joined.member_id)
