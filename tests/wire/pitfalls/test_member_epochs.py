"""Pitfalls 11 and 24: commits of consumer protocol members with an old epoch, and of former members."""

import uuid
from typing import Any

import pytest
from tests.clients.client import wait_until
from tests.support.raw_calls import Topic, new_topic
from tests.support.raw_client import RawClient
from tests.support.raw_groups import FIND_COORDINATOR, RawGroup

from barnabas.errors import ErrorCode
from barnabas.wire.messages import offset_commit, txn_offset_commit
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

OFFSET_COMMIT, INIT_PRODUCER_ID, ADD_OFFSETS_TO_TXN, TXN_OFFSET_COMMIT = 8, 22, 25, 28
CONSUMER_GROUP_HEARTBEAT = 68
E = ErrorCode


class Member:
    def __init__(self, group: RawGroup, topic: Topic, name: str) -> None:
        self._group = group
        self._topic = topic
        self.name = name
        self.epoch = 0
        self.owned: list[int] = []

    def beat(self) -> None:
        """Reports what it owns, and immediately releases what it must not have."""
        listed = [TopicPartitions(topic_id=self._topic.id, partitions=self.owned)] if self.owned else []
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group.name,
            member_id=self.name,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[self._topic.name],
            topic_partitions=listed,
        )
        answer = self._group.client.call(CONSUMER_GROUP_HEARTBEAT, 1, request)
        assert answer.error_code == 0
        self.epoch = answer.member_epoch
        assigned = answer.assignment.topic_partitions
        self.owned = [number for topic in assigned for number in topic.partitions]

    def leave(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group.name, member_id=self.name, member_epoch=-1
        )
        assert self._group.client.call(CONSUMER_GROUP_HEARTBEAT, 1, request).error_code == 0


class Stage:
    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.topic = new_topic(client, partitions=2)
        self.group = RawGroup(client, f"epochs-{uuid.uuid4().hex}")
        self.group.find()

    def member(self, name: str) -> Member:
        return Member(self.group, self.topic, name)

    def settle(self, *members: Member) -> None:
        """Wait until all partitions are assigned and all members have the same epoch."""

        def is_settled() -> bool:
            for member in members:
                member.beat()
            owned = sorted(number for member in members for number in member.owned)
            is_shared = owned == [0, 1] and all(member.owned for member in members)
            return is_shared and len({member.epoch for member in members}) == 1

        wait_until(is_settled, "the partitions are shared")

    def commit(self, member: str, epoch: int, *partitions: int, version: int = 9) -> set[int]:
        listed = [
            offset_commit.OffsetCommitRequestPartition(partition_index=number, committed_offset=1)
            for number in partitions
        ]
        topic = offset_commit.OffsetCommitRequestTopic(
            name=self.topic.name, topic_id=self.topic.id, partitions=listed
        )
        request = offset_commit.OffsetCommitRequest(
            group_id=self.group.name,
            member_id=member,
            generation_id_or_member_epoch=epoch,
            topics=[topic],
        )
        return _codes(self.client.call(OFFSET_COMMIT, version, request))

    def commit_in_transaction(self, member: str, epoch: int, *partitions: int) -> set[int]:
        """Commit with a new producer; its transaction stays open."""
        name = f"transaction-{uuid.uuid4().hex}"
        producer = self._producer(name)
        listed = [
            txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=number, committed_offset=1)
            for number in partitions
        ]
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=self.group.name,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            generation_id=epoch,
            member_id=member,
            topics=[txn_offset_commit.TxnOffsetCommitRequestTopic(name=self.topic.name, partitions=listed)],
        )
        return _codes(self.client.call(TXN_OFFSET_COMMIT, 3, request))

    def _producer(self, name: str) -> Any:
        finding = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        answers: list[Any] = []

        def is_ready() -> bool:
            self.client.call(FIND_COORDINATOR, 6, finding)
            answers.append(self.client.call(INIT_PRODUCER_ID, 4, request))
            return bool(answers[-1].error_code == 0)

        wait_until(is_ready, "a coordinator of transactions")
        adding = AddOffsetsToTxnRequest(
            transactional_id=name,
            producer_id=answers[-1].producer_id,
            producer_epoch=answers[-1].producer_epoch,
            group_id=self.group.name,
        )
        assert self.client.call(ADD_OFFSETS_TO_TXN, 3, adding).error_code == 0
        return answers[-1]


def _codes(response: Any) -> set[int]:
    return {part.error_code for topic in response.topics for part in topic.partitions}


@pytest.fixture
def stage(client: RawClient) -> Stage:
    return Stage(client)


def test_11_24_a_member_with_an_old_epoch_commits_partitions_it_still_owns(stage: Stage) -> None:
    first, second = stage.member("first"), stage.member("second")
    stage.settle(first)
    before = first.epoch
    assert stage.commit("first", before, 0, 1) == {E.NONE}
    stage.settle(first, second)
    (kept,), (given,) = first.owned, second.owned
    now = first.epoch
    assert before < now
    for version in (9, 10):
        assert stage.commit("first", now, kept, given, version=version) == {E.NONE}
        assert stage.commit("first", before, kept, version=version) == {E.NONE}
        assert stage.commit("first", before, given, version=version) == {E.STALE_MEMBER_EPOCH}
        assert stage.commit("first", before, kept, given, version=version) == {E.STALE_MEMBER_EPOCH}
        assert stage.commit("first", before - 1, kept, version=version) == {E.STALE_MEMBER_EPOCH}
        assert stage.commit("first", now + 1, kept, version=version) == {E.STALE_MEMBER_EPOCH}
        assert stage.commit("second", before, given, version=version) == {E.STALE_MEMBER_EPOCH}
    first.leave()
    second.leave()


def test_11_24_a_client_that_is_not_a_member_can_commit_to_an_empty_group_only(stage: Stage) -> None:
    member = stage.member("member")
    stage.settle(member)
    assert stage.commit("stranger", member.epoch, 0) == {E.UNKNOWN_MEMBER_ID}
    assert stage.commit("", -1, 0) == {E.UNKNOWN_MEMBER_ID}
    assert stage.commit("member", -1, 0) == {E.STALE_MEMBER_EPOCH}
    assert stage.commit("member", member.epoch, 0, version=8) == {E.UNSUPPORTED_VERSION}
    member.leave()
    assert stage.commit("member", member.epoch, 0) == {E.UNKNOWN_MEMBER_ID}
    assert stage.commit("", -1, 0) == {E.NONE}


def test_11_24_producers_get_errors_about_generations(stage: Stage) -> None:
    member = stage.member("member")
    stage.settle(member)
    assert stage.commit_in_transaction("member", member.epoch, 0) == {E.NONE}
    assert stage.commit_in_transaction("", -1, 0) == {E.NONE}
    assert stage.commit_in_transaction("member", member.epoch + 1, 0) == {E.ILLEGAL_GENERATION}
    assert stage.commit_in_transaction("stranger", member.epoch, 0) == {E.UNKNOWN_MEMBER_ID}
    assert stage.commit_in_transaction("member", member.epoch, 7) == {E.UNKNOWN_TOPIC_OR_PARTITION}
    assert stage.commit_in_transaction("member", member.epoch, 1, 7) == {
        E.NONE,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    member.leave()
