"""Stories of a shard: groups of both kinds, strangers, administrators, offsets, failover."""

import logging
from typing import Any

import pytest

from barnabas.coordination.step import JournalRecord, Machine, Producer
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic import ClassicGroup, ClientInfo
from barnabas.groups.consumer import ConsumerGroup
from barnabas.groups.settings import GroupSettings
from barnabas.groups.shard import GroupShard
from barnabas.ids import TopicPartition
from barnabas.testing.group_shards import Answer, FakeTopics, ShardBench, durable
from barnabas.wire.codec import encode_message
from barnabas.wire.message import NEVER
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.wire.messages.consumer_protocol_assignment import TopicPartition as AssignedPartitions
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.list_groups import ListedGroup
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

GROUP = "group"
CLIENT = ClientInfo("client", "/10.0.0.1")
SETTINGS = GroupSettings(initial_rebalance_delay_ms=100)
RETENTION_MS = SETTINGS.offsets_retention_ms


@pytest.fixture
def bench() -> ShardBench:
    topics = FakeTopics()
    topics.make("topic", 4)
    return ShardBench(SETTINGS, topics)


# Members of the classic protocol


def subscription() -> bytes:
    return b"\x00\x00" + encode_message(ConsumerProtocolSubscription(topics=["topic"]), 0, NEVER)


def assignment(*partitions: int) -> bytes:
    assigned = AssignedPartitions(topic="topic", partitions=list(partitions))
    value = ConsumerProtocolAssignment(assigned_partitions=[assigned] if partitions else [])
    return b"\x00\x00" + encode_message(value, 0, NEVER)


def join_request(member_id: str = "", instance_id: str | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription())],
    )


def ask_to_join(
    bench: ShardBench, member_id: str = "", instance_id: str | None = None, version: int = 9
) -> Answer:
    request = join_request(member_id, instance_id)
    return bench.ask(lambda shard, waiter: shard.join_group(request, CLIENT, version, waiter, bench.now_ms))


def new_member_id(bench: ShardBench) -> str:
    answer = ask_to_join(bench).value
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    member_id: str = answer.member_id
    return member_id


def ask_to_sync(bench: ShardBench, member_id: str, generation: int, **assigned: bytes) -> Answer:
    request = SyncGroupRequest(
        group_id=GROUP,
        member_id=member_id,
        generation_id=generation,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            SyncGroupRequestAssignment(member_id=name, assignment=share) for name, share in assigned.items()
        ],
    )
    return bench.ask(lambda shard, waiter: shard.sync_group(request, 5, waiter, bench.now_ms))


def stable_member(bench: ShardBench, instance_id: str | None = None) -> tuple[str, int]:
    """A group of one, with all partitions: its member id and generation."""
    member_id = "" if instance_id is not None else new_member_id(bench)
    joined = ask_to_join(bench, member_id, instance_id)
    bench.pass_time(100)
    member_id, generation = joined.value.member_id, joined.value.generation_id
    synced = ask_to_sync(bench, member_id, generation, **{member_id: assignment(0, 1, 2, 3)})
    assert synced.value.error_code == ErrorCode.NONE
    return member_id, generation


def heartbeat(bench: ShardBench, member_id: str, generation: int, group: str = GROUP) -> int:
    request = HeartbeatRequest(group_id=group, member_id=member_id, generation_id=generation)
    code: int = bench.call(lambda shard: shard.heartbeat(request, bench.now_ms)).error_code
    return code


def leave(bench: ShardBench, member_id: str, group: str = GROUP) -> object:
    request = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member_id)])
    answer = bench.call(lambda shard: shard.leave_group(request, 5, bench.now_ms))
    return answer.error_code, [member.error_code for member in answer.members]


# Members of the consumer protocol


def consumer_heartbeat(
    bench: ShardBench, member_id: str = "modern", epoch: int = 0, **fields: Any
) -> ConsumerGroupHeartbeatResponse:
    joining: dict[str, Any] = {}
    if epoch == 0:
        joining = {
            "rebalance_timeout_ms": 5000,
            "subscribed_topic_names": ["topic"],
            "topic_partitions": [],
        }
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id=member_id, member_epoch=epoch, **joining | fields
    )
    answer: ConsumerGroupHeartbeatResponse = bench.call(
        lambda shard: shard.consumer_group_heartbeat(request, CLIENT, 1, bench.now_ms)
    )
    return answer


# Offsets


def commit(
    bench: ShardBench,
    offset: int = 7,
    member_id: str = "",
    generation: int = -1,
    version: int = 9,
    **fields: Any,
) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="topic", partitions=[partition])
    request = OffsetCommitRequest(
        **{"group_id": GROUP, "topics": [topic], "member_id": member_id} | fields,
        generation_id_or_member_epoch=generation,
    )
    answer = bench.call(lambda shard: shard.offset_commit(request, version, bench.now_ms))
    code: int = answer.topics[0].partitions[0].error_code
    return code


def txn_commit(
    bench: ShardBench,
    offset: int = 7,
    member_id: str = "",
    generation: int = -1,
    producer_id: int = 5,
    group: str = GROUP,
) -> int:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id=group,
        producer_id=producer_id,
        member_id=member_id,
        generation_id=generation,
        topics=[TxnOffsetCommitRequestTopic(name="topic", partitions=[partition])],
    )
    answer = bench.call(lambda shard: shard.txn_offset_commit(request, 5, bench.now_ms))
    code: int = answer.topics[0].partitions[0].error_code
    return code


def fetch(
    bench: ShardBench, *, stable: bool = False, member_id: str | None = None, epoch: int = -1
) -> tuple[int, int]:
    """(error, offset)."""
    request = OffsetFetchRequestGroup(
        group_id=GROUP,
        member_id=member_id,
        member_epoch=epoch,
        topics=[OffsetFetchRequestTopics(name="topic", partition_indexes=[0])],
    )
    answer = bench.call(lambda shard: shard.offset_fetch(request, stable))
    if answer.error_code:
        return answer.error_code, -1
    partition = answer.topics[0].partitions[0]
    return partition.error_code, partition.committed_offset


def delete_group(bench: ShardBench, group: str = GROUP) -> int:
    code: int = bench.call(lambda shard: shard.delete_group(group, bench.now_ms)).error_code
    return code


def listed(bench: ShardBench, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[ListedGroup]:
    groups: list[ListedGroup] = bench.call(lambda shard: shard.list_groups(states, types))
    return groups


def group_kind(bench: ShardBench) -> type | None:
    group = bench.shard.groups.find(GROUP)
    return None if group is None else type(group)


def check_replay(bench: ShardBench) -> None:
    assert durable(bench.replayed()) == durable(bench.shard)
    assert durable(bench.replayed_compacted()) == durable(bench.shard)


# Stories: who may commit


def test_a_member_commits_and_finds_its_offset_again(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench)
    assert commit(bench, 7, member_id, generation) == ErrorCode.NONE
    assert fetch(bench) == (ErrorCode.NONE, 7)
    check_replay(bench)


def test_a_standalone_consumer_with_the_groups_name_may_not_commit(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench)
    commit(bench, 7, member_id, generation)
    assert commit(bench, 99) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(bench, 99, "stranger", generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert fetch(bench) == (ErrorCode.NONE, 7)


def test_a_standalone_consumer_commits_where_there_is_no_group(bench: ShardBench) -> None:
    assert commit(bench, 7) == ErrorCode.NONE
    assert commit(bench, 8) == ErrorCode.NONE
    assert fetch(bench) == (ErrorCode.NONE, 8)
    assert [(group.group_id, group.protocol_type, group.group_state) for group in listed(bench)] == [
        (GROUP, "", "Empty")
    ]
    check_replay(bench)


def test_an_empty_group_takes_commits_of_strangers(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench)
    leave(bench, member_id)
    assert commit(bench, 9, member_id, generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(bench, 9) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_generation_needs_a_group(bench: ShardBench, version: int, error: ErrorCode) -> None:
    assert commit(bench, 7, "m", 3, version=version) == error
    assert bench.journal == []


def test_a_commit_of_another_generation_is_refused(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench)
    assert commit(bench, 7, member_id, generation - 1) == ErrorCode.ILLEGAL_GENERATION
    assert txn_commit(bench, 7, member_id, generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert fetch(bench) == (ErrorCode.NONE, -1)


def test_a_commit_between_join_and_sync_has_to_wait(bench: ShardBench) -> None:
    joined = ask_to_join(bench, new_member_id(bench))
    bench.pass_time(100)
    member_id, generation = joined.value.member_id, joined.value.generation_id
    assert commit(bench, 7, member_id, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert txn_commit(bench, 7, member_id, generation) == ErrorCode.NONE


def test_a_static_member_that_was_replaced_is_fenced(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench, "static")
    successor = ask_to_join(bench, "", "static").value
    assert successor.error_code == ErrorCode.NONE
    assert successor.member_id != member_id
    assert commit(bench, 7, member_id, generation, group_instance_id="static") == ErrorCode.FENCED_INSTANCE_ID
    assert commit(bench, 7, successor.member_id, generation, group_instance_id="static") == ErrorCode.NONE
    check_replay(bench)


def test_commits_keep_a_member_alive(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench)
    for _ in range(5):
        bench.pass_time(9_000)
        assert commit(bench, 7, member_id, generation) == ErrorCode.NONE
    bench.pass_time(10_000)
    assert commit(bench, 7, member_id, generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_of_the_consumer_protocol_commits_at_its_epoch(bench: ShardBench) -> None:
    epoch = consumer_heartbeat(bench).member_epoch
    assert commit(bench, 7, "modern", epoch) == ErrorCode.NONE
    assert commit(bench, 8, "modern", epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(bench, 8, "modern", epoch, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert commit(bench, 8, "stranger", epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(bench, 8) == ErrorCode.UNKNOWN_MEMBER_ID
    assert txn_commit(bench, 8, "modern", epoch + 1) == ErrorCode.ILLEGAL_GENERATION
    assert fetch(bench) == (ErrorCode.NONE, 7)
    assert fetch(bench, member_id="modern", epoch=epoch) == (ErrorCode.NONE, 7)
    assert fetch(bench, member_id="modern", epoch=epoch + 1) == (ErrorCode.STALE_MEMBER_EPOCH, -1)
    assert fetch(bench, member_id="stranger", epoch=epoch) == (ErrorCode.UNKNOWN_MEMBER_ID, -1)
    check_replay(bench)


# Transactions


def test_offsets_of_a_transaction_show_when_it_commits(bench: ShardBench) -> None:
    commit(bench, 7)
    assert txn_commit(bench, 20) == ErrorCode.NONE
    assert fetch(bench) == (ErrorCode.NONE, 7)
    assert fetch(bench, stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    bench.fail_over()
    assert fetch(bench, stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    bench.marker(Producer(5, 0), is_commit=True)
    assert fetch(bench, stable=True) == (ErrorCode.NONE, 20)
    bench.fail_over()
    assert fetch(bench) == (ErrorCode.NONE, 20)


def test_offsets_of_an_aborted_transaction_never_show(bench: ShardBench) -> None:
    txn_commit(bench, 20)
    bench.marker(Producer(5, 0), is_commit=False)
    assert fetch(bench, stable=True) == (ErrorCode.NONE, -1)
    check_replay(bench)


def test_a_transaction_needs_a_group_id_and_for_a_generation_a_group(bench: ShardBench) -> None:
    assert txn_commit(bench, group="") == ErrorCode.INVALID_GROUP_ID
    assert txn_commit(bench, generation=3) == ErrorCode.ILLEGAL_GENERATION


# Groups that are not there


def test_what_a_missing_group_answers(bench: ShardBench) -> None:
    assert heartbeat(bench, "m", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert ask_to_sync(bench, "m", 1).value.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert leave(bench, "m") == (ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID])
    assert ask_to_join(bench, "m").value.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert consumer_heartbeat(bench, epoch=3).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert delete_group(bench) == ErrorCode.GROUP_ID_NOT_FOUND
    assert fetch(bench) == (ErrorCode.NONE, -1)
    old = bench.call(lambda shard: shard.describe_group(GROUP, 5))
    assert (old.error_code, old.group_state) == (ErrorCode.NONE, "Dead")
    new = bench.call(lambda shard: shard.describe_group(GROUP, 6))
    assert (new.error_code, new.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    consumer = bench.call(lambda shard: shard.describe_consumer_group(GROUP))
    assert consumer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    deleted = bench.call(lambda shard: shard.offset_delete(OffsetDeleteRequest(group_id=GROUP)))
    assert deleted.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert listed(bench) == []
    assert bench.journal == []


def test_groups_have_names(bench: ShardBench) -> None:
    assert heartbeat(bench, "m", 1, group="") == ErrorCode.INVALID_GROUP_ID
    assert leave(bench, "m", group="") == (ErrorCode.INVALID_GROUP_ID, [])
    joined = bench.ask(
        lambda shard, waiter: shard.join_group(JoinGroupRequest(), CLIENT, 9, waiter, bench.now_ms)
    )
    assert joined.value.error_code == ErrorCode.INVALID_GROUP_ID
    synced = bench.ask(lambda shard, waiter: shard.sync_group(SyncGroupRequest(), 5, waiter, 0))
    assert synced.value.error_code == ErrorCode.INVALID_GROUP_ID
    deleted = bench.call(lambda shard: shard.offset_delete(OffsetDeleteRequest()))
    assert deleted.error_code == ErrorCode.INVALID_GROUP_ID
    request = ConsumerGroupHeartbeatRequest(member_id="m", member_epoch=4)
    answer = bench.call(lambda shard: shard.consumer_group_heartbeat(request, CLIENT, 1, 0))
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_a_join_that_is_refused_leaves_no_group(bench: ShardBench) -> None:
    request = join_request()
    request.session_timeout_ms = 1
    answer = bench.ask(lambda shard, waiter: shard.join_group(request, CLIENT, 9, waiter, bench.now_ms))
    assert answer.value.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert listed(bench) == []


def test_a_group_that_nobody_came_to_is_forgotten(bench: ShardBench) -> None:
    new_member_id(bench)
    assert group_kind(bench) is ClassicGroup
    bench.pass_time(10_000)
    assert group_kind(bench) is None
    assert bench.timers == {}


# Administrators


def test_groups_are_listed_by_state_and_type(bench: ShardBench) -> None:
    stable_member(bench)
    commit(bench, group_id="simple")

    def names(states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> set[str]:
        return {group.group_id for group in listed(bench, states, types)}

    assert names() == {GROUP, "simple"}
    assert names(states=("stable",)) == {GROUP}
    assert names(states=(" Empty ", "Dead")) == {"simple"}
    assert names(types=("Classic",)) == {GROUP, "simple"}
    assert names(types=("consumer", "nonsense")) == set()
    assert names(states=("Stable",), types=("consumer",)) == set()


def test_each_kind_is_described_by_its_own_api(bench: ShardBench) -> None:
    stable_member(bench)
    classic = bench.call(lambda shard: shard.describe_group(GROUP, 6))
    assert (classic.error_code, classic.group_state, classic.protocol_data) == (0, "Stable", "range")
    assert len(classic.members) == 1
    consumer = bench.call(lambda shard: shard.describe_consumer_group(GROUP))
    assert consumer.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_consumer_group_is_described_and_listed(bench: ShardBench) -> None:
    consumer_heartbeat(bench)
    consumer = bench.call(lambda shard: shard.describe_consumer_group(GROUP))
    assert (consumer.error_code, len(consumer.members)) == (ErrorCode.NONE, 1)
    classic = bench.call(lambda shard: shard.describe_group(GROUP, 6))
    assert classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert [(group.group_type, group.protocol_type) for group in listed(bench)] == [("consumer", "consumer")]


def test_a_group_is_deleted_with_its_offsets_when_it_is_empty(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench)
    commit(bench, 7, member_id, generation)
    txn_commit(bench, 8, member_id, generation)
    assert delete_group(bench) == ErrorCode.NON_EMPTY_GROUP
    leave(bench, member_id)
    assert delete_group(bench) == ErrorCode.NONE
    assert listed(bench) == []
    bench.marker(Producer(5, 0), is_commit=True)
    assert fetch(bench) == (ErrorCode.NONE, -1)
    check_replay(bench)
    assert delete_group(bench) == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_is_deleted_while_somebody_is_about_to_join(bench: ShardBench) -> None:
    commit(bench)
    member_id = new_member_id(bench)
    assert delete_group(bench) == ErrorCode.NONE
    assert bench.timers == {}
    assert ask_to_join(bench, member_id).value.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_consumer_group_is_deleted_when_it_is_empty(bench: ShardBench) -> None:
    epoch = consumer_heartbeat(bench).member_epoch
    commit(bench, 7, "modern", epoch)
    assert delete_group(bench) == ErrorCode.NON_EMPTY_GROUP
    consumer_heartbeat(bench, epoch=-1)
    assert delete_group(bench) == ErrorCode.NONE
    assert durable(bench.replayed()) == {"offsets": ({}, {})}
    check_replay(bench)


def offset_delete(bench: ShardBench) -> tuple[int, list[int]]:
    topic = OffsetDeleteRequestTopic(
        name="topic", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
    )
    request = OffsetDeleteRequest(group_id=GROUP, topics=[topic])
    answer = bench.call(lambda shard: shard.offset_delete(request))
    return answer.error_code, [part.error_code for each in answer.topics for part in each.partitions]


def test_offsets_are_deleted_when_nobody_reads_the_topic(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench)
    commit(bench, 7, member_id, generation)
    assert offset_delete(bench) == (ErrorCode.NONE, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC])
    leave(bench, member_id)
    assert offset_delete(bench) == (ErrorCode.NONE, [ErrorCode.NONE])
    assert fetch(bench) == (ErrorCode.NONE, -1)


# Time


def expire(bench: ShardBench) -> None:
    while bench.call(lambda shard: shard.expire_offsets(bench.now_ms)):
        pass


def test_offsets_outlive_a_group_by_their_retention(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench)
    commit(bench, 7, member_id, generation)
    for _ in range(3):
        bench.now_ms += RETENTION_MS
        expire(bench)
    assert fetch(bench) == (ErrorCode.NONE, 7)
    leave(bench, member_id)
    bench.now_ms += RETENTION_MS - 1
    expire(bench)
    assert fetch(bench) == (ErrorCode.NONE, 7)
    bench.now_ms += 1
    expire(bench)
    assert fetch(bench) == (ErrorCode.NONE, -1)
    assert listed(bench) == []
    check_replay(bench)


def test_offsets_of_a_simple_consumer_count_from_their_commit(bench: ShardBench) -> None:
    commit(bench, 7)
    bench.now_ms += RETENTION_MS - 1
    expire(bench)
    assert fetch(bench) == (ErrorCode.NONE, 7)
    commit(bench, 8)
    bench.now_ms += RETENTION_MS - 1
    expire(bench)
    assert fetch(bench) == (ErrorCode.NONE, 8)
    bench.now_ms += 1
    expire(bench)
    assert listed(bench) == []


def test_many_offsets_go_in_portions(bench: ShardBench) -> None:
    for number in range(600):
        commit(bench, group_id=f"group {number}")
    bench.now_ms += RETENTION_MS
    assert bench.call(lambda shard: shard.expire_offsets(bench.now_ms)) is True
    assert len(bench.journal) == 600 + 1000
    expire(bench)
    assert listed(bench) == []
    assert durable(bench.replayed()) == {"offsets": ({}, {})}


def test_offsets_found_without_a_group_expire_too(bench: ShardBench) -> None:
    commit(bench, 7)
    # Such a journal is left when the record of the group was lost, say to an older broker's mistake.
    bench.shard.apply(JournalRecord(b"\x00\x02\x00\x05group", None), None)
    bench.journal.append((JournalRecord(b"\x00\x02\x00\x05group", None), None))
    assert listed(bench) == []
    bench.fail_over()
    assert len(listed(bench)) == 1
    bench.now_ms += RETENTION_MS
    expire(bench)
    assert listed(bench) == []


# Topics


def test_the_offsets_of_a_deleted_topic_go(bench: ShardBench) -> None:
    commit(bench, 7)
    txn_commit(bench, 8, group="another")
    old_id = bench.topics.id_of("topic")
    assert bench.call(lambda shard: shard.topic_deleted("topic", old_id)) is False
    assert fetch(bench) == (ErrorCode.NONE, -1)
    bench.marker(Producer(5, 0), is_commit=True)
    assert bench.shard.groups.offsets.group_ids() == set()
    check_replay(bench)


def test_offsets_of_the_topics_successor_stay(bench: ShardBench) -> None:
    old_id = bench.topics.id_of("topic")
    bench.topics.make("topic", 1)
    commit(bench, 7)
    bench.call(lambda shard: shard.topic_deleted("topic", old_id))
    assert fetch(bench) == (ErrorCode.NONE, 7)


def test_more_partitions_reach_the_members_of_a_consumer_group(bench: ShardBench) -> None:
    first = consumer_heartbeat(bench)
    bench.topics.counts["topic"] = 6
    bench.call(lambda shard: shard.topics_changed(bench.now_ms))
    second = consumer_heartbeat(bench, epoch=first.member_epoch)
    assert second.member_epoch > first.member_epoch
    assert second.assignment is not None
    assert second.assignment.topic_partitions[0].partitions == [0, 1, 2, 3, 4, 5]
    check_replay(bench)


def test_a_new_topic_reaches_those_whose_pattern_it_matches(bench: ShardBench) -> None:
    fields: dict[str, Any] = {"subscribed_topic_names": None, "subscribed_topic_regex": "top.*"}
    first = consumer_heartbeat(bench, **fields)
    bench.topics.make("topology", 1)
    bench.topics.make("other", 1)
    bench.call(lambda shard: shard.topics_changed(bench.now_ms))
    second = consumer_heartbeat(bench, epoch=first.member_epoch)
    assert second.assignment is not None
    assert len(second.assignment.topic_partitions) == 2


# Failover


def test_a_stable_group_goes_on_after_a_failover(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench)
    commit(bench, 7, member_id, generation)
    bench.fail_over()
    assert heartbeat(bench, member_id, generation) == ErrorCode.NONE
    assert commit(bench, 8, member_id, generation) == ErrorCode.NONE
    bench.pass_time(10_000)
    assert heartbeat(bench, member_id, generation) == ErrorCode.UNKNOWN_MEMBER_ID
    check_replay(bench)


def test_whoever_waits_is_sent_away_when_the_shard_moves(bench: ShardBench) -> None:
    waiting = ask_to_join(bench, new_member_id(bench))
    bench.call(lambda shard: shard.resigned(bench.now_ms))
    assert waiting.value.error_code == ErrorCode.NOT_COORDINATOR
    assert bench.timers == {}


def test_records_of_other_kinds_are_named_once(bench: ShardBench, caplog: pytest.LogCaptureFixture) -> None:
    share_group = JournalRecord(b"\x00\x0a\x00\x01g\x00\x01m", b"\x00\x00")
    with caplog.at_level(logging.WARNING):
        bench.shard.apply(share_group, None)
        bench.shard.apply(share_group, None)
    assert [record.getMessage() for record in caplog.records] == [
        "records of type 10 in __consumer_offsets are passed over"
    ]
    assert listed(bench) == []


@pytest.mark.parametrize("key", ["session", ("group",), ("group", "g"), ("other", "g", "join")])
def test_timers_of_nobody_are_a_bug(bench: ShardBench, key: object) -> None:
    with pytest.raises(ValueError, match="no group has a timer"):
        bench.shard.lapse(key, 0)


# Changes of kind


def test_an_empty_classic_group_becomes_a_consumer_group(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench)
    commit(bench, 7, member_id, generation)
    leave(bench, member_id)
    joined = consumer_heartbeat(bench)
    assert joined.error_code == ErrorCode.NONE
    assert group_kind(bench) is ConsumerGroup
    assert fetch(bench) == (ErrorCode.NONE, 7)
    check_replay(bench)


def test_a_group_of_simple_consumers_becomes_a_consumer_group(bench: ShardBench) -> None:
    commit(bench, 7)
    epoch = consumer_heartbeat(bench).member_epoch
    assert commit(bench, 8) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(bench, 8, "modern", epoch) == ErrorCode.NONE
    check_replay(bench)


def empty_consumer_group(bench: ShardBench) -> None:
    epoch = consumer_heartbeat(bench).member_epoch
    commit(bench, 7, "modern", epoch)
    consumer_heartbeat(bench, epoch=-1)


def test_an_empty_consumer_group_becomes_a_classic_group(bench: ShardBench) -> None:
    empty_consumer_group(bench)
    stable_member(bench)
    assert group_kind(bench) is ClassicGroup
    assert fetch(bench) == (ErrorCode.NONE, 7)
    check_replay(bench)
    bench.fail_over()
    assert group_kind(bench) is ClassicGroup


def test_nothing_of_the_consumer_group_is_left_behind(bench: ShardBench) -> None:
    empty_consumer_group(bench)
    member_id, _ = stable_member(bench)
    leave(bench, member_id)
    assert delete_group(bench) == ErrorCode.NONE
    assert durable(bench.replayed_compacted()) == {"offsets": ({}, {})}


def test_it_stays_a_consumer_group_until_classic_members_are_in(bench: ShardBench) -> None:
    empty_consumer_group(bench)
    new_member_id(bench)
    assert group_kind(bench) is ClassicGroup
    check_replay(bench)
    bench.pass_time(10_000)
    assert group_kind(bench) is ConsumerGroup
    check_replay(bench)


def test_it_may_be_deleted_in_between(bench: ShardBench) -> None:
    empty_consumer_group(bench)
    new_member_id(bench)
    assert delete_group(bench) == ErrorCode.NONE
    assert durable(bench.replayed()) == {"offsets": ({}, {})}
    check_replay(bench)


def test_a_consumer_comes_back_before_the_classic_members_are_in(bench: ShardBench) -> None:
    empty_consumer_group(bench)
    classic = ask_to_join(bench, new_member_id(bench))
    modern = consumer_heartbeat(bench)
    assert classic.value.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert modern.error_code == ErrorCode.NONE
    assert group_kind(bench) is ConsumerGroup
    check_replay(bench)


def test_a_classic_group_with_members_is_upgraded(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench)
    commit(bench, 7, member_id, generation)
    modern = consumer_heartbeat(bench)
    assert modern.error_code == ErrorCode.NONE
    assert group_kind(bench) is ConsumerGroup
    described = bench.call(lambda shard: shard.describe_consumer_group(GROUP))
    assert {member.member_id for member in described.members} == {member_id, "modern"}
    assert heartbeat(bench, member_id, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert commit(bench, 8, member_id, generation) == ErrorCode.NONE
    assert fetch(bench) == (ErrorCode.NONE, 8)
    check_replay(bench)


def test_an_upgrade_that_cannot_be_written_changes_nothing(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench)
    before = durable(bench.shard)
    bench.disk_is_full = True
    with pytest.raises(KafkaError):
        consumer_heartbeat(bench)
    bench.disk_is_full = False
    assert durable(bench.shard) == before
    assert heartbeat(bench, member_id, generation) == ErrorCode.NONE
    assert consumer_heartbeat(bench).error_code == ErrorCode.NONE
    check_replay(bench)


def test_an_upgrade_may_be_forbidden(bench: ShardBench) -> None:
    strict = ShardBench(
        GroupSettings(initial_rebalance_delay_ms=100, migration_policy="disabled"), bench.topics
    )
    member_id, generation = stable_member(strict)
    assert consumer_heartbeat(strict).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert heartbeat(strict, member_id, generation) == ErrorCode.NONE


def test_a_consumer_group_with_classic_members_only_is_downgraded(bench: ShardBench) -> None:
    member_id, generation = stable_member(bench)
    consumer_heartbeat(bench)
    consumer_heartbeat(bench, epoch=-1)
    bench.pass_time(0)
    assert group_kind(bench) is ClassicGroup
    group = bench.shard.groups.find(GROUP)
    assert isinstance(group, ClassicGroup)
    assert [member.id for member in group.members] == [member_id]
    assert heartbeat(bench, member_id, group.generation) == ErrorCode.REBALANCE_IN_PROGRESS
    check_replay(bench)
    joined = ask_to_join(bench, member_id)
    assert joined.value.error_code == ErrorCode.NONE
    assert joined.value.generation_id > generation


def test_timers_of_the_kind_a_group_no_longer_has_do_nothing(bench: ShardBench) -> None:
    consumer_heartbeat(bench)
    for key in [("group", GROUP, "pending", "m"), ("group", GROUP, "sync"), ("group", "gone", "join")]:
        step = bench.shard.lapse(key, bench.now_ms)
        assert (step.records, step.timers) == ([], [])


def test_a_partition_of_a_topic_that_is_gone_is_still_fetched(bench: ShardBench) -> None:
    commit(bench, 7)
    del bench.topics.counts["topic"]
    assert fetch(bench) == (ErrorCode.NONE, 7)
    stored = bench.shard.groups.offsets.get(GROUP, TopicPartition("topic", 0))
    assert stored is not None


def test_the_shard_is_what_the_runtime_asks_for() -> None:
    machine: Machine = GroupShard(SETTINGS, FakeTopics())
    assert machine.loaded(0).records == []
