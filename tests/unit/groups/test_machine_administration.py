"""A group machine: groups that are missing, listed, described, deleted, expired, and their topics."""

from typing import Any

from tests.support.group_calls import (
    CLIENT,
    GROUP,
    RETENTION_MS,
    ask_to_join,
    ask_to_sync,
    check_replay,
    commit,
    consumer_heartbeat,
    delete_group,
    fetch,
    group_kind,
    heartbeat,
    join_request,
    leave,
    listed,
    new_member_id,
    stable_member,
    txn_commit,
)
from tests.support.group_machines import MachineBench, durable

from barnabas.coordination.step import JournalRecord, Producer
from barnabas.errors import ErrorCode
from barnabas.groups.classic.group import ClassicGroup
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.wire.messages.sync_group import SyncGroupRequest


def test_what_a_missing_group_answers(bench: MachineBench) -> None:
    assert heartbeat(bench, "m", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert ask_to_sync(bench, "m", 1).value.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert leave(bench, "m") == (ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID])
    assert ask_to_join(bench, "m").value.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert consumer_heartbeat(bench, epoch=3).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert delete_group(bench) == ErrorCode.GROUP_ID_NOT_FOUND
    assert fetch(bench) == (ErrorCode.NONE, -1)
    old = bench.call(lambda machine: machine.describe_group(GROUP, 5))
    assert (old.error_code, old.group_state) == (ErrorCode.NONE, "Dead")
    new = bench.call(lambda machine: machine.describe_group(GROUP, 6))
    assert (new.error_code, new.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    consumer = bench.call(lambda machine: machine.describe_consumer_group(GROUP))
    assert consumer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    deleted = bench.call(lambda machine: machine.offset_delete(OffsetDeleteRequest(group_id=GROUP)))
    assert deleted.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert listed(bench) == []
    assert bench.journal == []


def test_an_empty_group_id_is_refused(bench: MachineBench) -> None:
    assert heartbeat(bench, "m", 1, group="") == ErrorCode.INVALID_GROUP_ID
    assert leave(bench, "m", group="") == (ErrorCode.INVALID_GROUP_ID, [])
    joined = bench.ask(
        lambda machine, waiter: machine.join_group(JoinGroupRequest(), CLIENT, 9, waiter, bench.now_ms)
    )
    assert joined.value.error_code == ErrorCode.INVALID_GROUP_ID
    synced = bench.ask(lambda machine, waiter: machine.sync_group(SyncGroupRequest(), 5, waiter, 0))
    assert synced.value.error_code == ErrorCode.INVALID_GROUP_ID
    deleted = bench.call(lambda machine: machine.offset_delete(OffsetDeleteRequest()))
    assert deleted.error_code == ErrorCode.INVALID_GROUP_ID
    request = ConsumerGroupHeartbeatRequest(member_id="m", member_epoch=4)
    answer = bench.call(lambda machine: machine.consumer_group_heartbeat(request, CLIENT, 1, 0))
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_a_join_that_is_refused_leaves_no_group(bench: MachineBench) -> None:
    request = join_request()
    request.session_timeout_ms = 1
    answer = bench.ask(lambda machine, waiter: machine.join_group(request, CLIENT, 9, waiter, bench.now_ms))
    assert answer.value.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert listed(bench) == []


def test_a_group_that_no_member_joined_is_dropped(bench: MachineBench) -> None:
    new_member_id(bench)
    assert group_kind(bench) is ClassicGroup
    bench.pass_time(10_000)
    assert group_kind(bench) is None
    assert bench.timers == {}


# Administrators


def test_groups_are_listed_by_state_and_type(bench: MachineBench) -> None:
    stable_member(bench)
    commit(bench, group_id="simple")

    def names(states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> set[str]:
        return {group.group_id for group in listed(bench, states, types)}

    assert names() == {GROUP, "simple"}
    assert names(states=("stable",)) == {GROUP}
    assert names(states=("empty", "dead")) == {"simple"}
    assert names(types=("classic",)) == {GROUP, "simple"}
    assert names(types=("consumer", "nonsense")) == set()
    assert names(states=("stable",), types=("consumer",)) == set()


def test_each_kind_of_group_is_described_by_its_own_api(bench: MachineBench) -> None:
    stable_member(bench)
    classic = bench.call(lambda machine: machine.describe_group(GROUP, 6))
    assert (classic.error_code, classic.group_state, classic.protocol_data) == (0, "Stable", "range")
    assert len(classic.members) == 1
    consumer = bench.call(lambda machine: machine.describe_consumer_group(GROUP))
    assert consumer.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_consumer_group_is_described_and_listed(bench: MachineBench) -> None:
    consumer_heartbeat(bench)
    consumer = bench.call(lambda machine: machine.describe_consumer_group(GROUP))
    assert (consumer.error_code, len(consumer.members)) == (ErrorCode.NONE, 1)
    classic = bench.call(lambda machine: machine.describe_group(GROUP, 6))
    assert classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert [(group.group_type, group.protocol_type) for group in listed(bench)] == [("consumer", "consumer")]


def test_a_group_is_deleted_with_its_offsets_when_it_is_empty(bench: MachineBench) -> None:
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


def test_a_group_is_deleted_while_a_member_is_about_to_join(bench: MachineBench) -> None:
    commit(bench)
    member_id = new_member_id(bench)
    assert delete_group(bench) == ErrorCode.NONE
    assert bench.timers == {}
    assert ask_to_join(bench, member_id).value.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_consumer_group_is_deleted_when_it_is_empty(bench: MachineBench) -> None:
    epoch = consumer_heartbeat(bench).member_epoch
    commit(bench, 7, "modern", epoch)
    assert delete_group(bench) == ErrorCode.NON_EMPTY_GROUP
    consumer_heartbeat(bench, epoch=-1)
    assert delete_group(bench) == ErrorCode.NONE
    assert durable(bench.replayed()) == {"offsets": ({}, {})}
    check_replay(bench)


def offset_delete(bench: MachineBench) -> tuple[int, list[int]]:
    topic = OffsetDeleteRequestTopic(
        name="topic", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
    )
    request = OffsetDeleteRequest(group_id=GROUP, topics=[topic])
    answer = bench.call(lambda machine: machine.offset_delete(request))
    return answer.error_code, [part.error_code for each in answer.topics for part in each.partitions]


def test_offsets_are_deleted_when_nobody_reads_the_topic(bench: MachineBench) -> None:
    member_id, generation = stable_member(bench)
    commit(bench, 7, member_id, generation)
    assert offset_delete(bench) == (ErrorCode.NONE, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC])
    leave(bench, member_id)
    assert offset_delete(bench) == (ErrorCode.NONE, [ErrorCode.NONE])
    assert fetch(bench) == (ErrorCode.NONE, -1)


# Time


def expire(bench: MachineBench) -> None:
    while bench.call(lambda machine: machine.expire_offsets(machine.groups.ids(), bench.now_ms)):
        pass


def test_offsets_are_kept_for_their_retention_after_the_group_is_empty(bench: MachineBench) -> None:
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


def test_offsets_of_a_simple_consumer_count_from_their_commit(bench: MachineBench) -> None:
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


def test_many_offsets_are_removed_in_portions(bench: MachineBench) -> None:
    for number in range(600):
        commit(bench, group_id=f"group {number}")
    bench.now_ms += RETENTION_MS
    assert bench.call(lambda machine: machine.expire_offsets(machine.groups.ids(), bench.now_ms)) is True
    assert len(bench.journal) == 600 + 1000
    expire(bench)
    assert listed(bench) == []
    assert durable(bench.replayed()) == {"offsets": ({}, {})}


def test_offsets_without_a_group_expire_too(bench: MachineBench) -> None:
    commit(bench, 7)
    # There is such a journal if the record of the group was lost, for example by a defect.
    bench.machine.apply(JournalRecord(b"\x00\x02\x00\x05group", None), None)
    bench.journal.append((JournalRecord(b"\x00\x02\x00\x05group", None), None))
    assert listed(bench) == []
    bench.fail_over()
    assert len(listed(bench)) == 1
    bench.now_ms += RETENTION_MS
    expire(bench)
    assert listed(bench) == []


# Topics


def test_the_offsets_of_a_deleted_topic_are_removed(bench: MachineBench) -> None:
    commit(bench, 7)
    txn_commit(bench, 8, group="another")
    old_id = bench.topics.id_of("topic")
    assert (
        bench.call(lambda machine: machine.topics_deleted(machine.groups.ids(), {"topic": old_id})) is False
    )
    assert fetch(bench) == (ErrorCode.NONE, -1)
    bench.marker(Producer(5, 0), is_commit=True)
    assert bench.machine.groups.offsets.group_ids() == set()
    check_replay(bench)


def test_offsets_of_a_new_topic_with_the_same_name_are_kept(bench: MachineBench) -> None:
    old_id = bench.topics.id_of("topic")
    bench.topics.make("topic", 1)
    commit(bench, 7)
    bench.call(lambda machine: machine.topics_deleted(machine.groups.ids(), {"topic": old_id}))
    assert fetch(bench) == (ErrorCode.NONE, 7)


def test_the_offsets_of_a_topic_that_was_deleted_during_a_failover_are_removed(bench: MachineBench) -> None:
    """No broker has coordinated the group when the topic was deleted and a new one got its name."""
    commit(bench, 7)
    bench.topics.make("topic", 1)
    bench.fail_over()
    assert bench.call(lambda machine: machine.remove_old_topics(machine.groups.ids())) is False
    assert fetch(bench) == (ErrorCode.NONE, -1)
    commit(bench, 3)
    bench.call(lambda machine: machine.remove_old_topics(machine.groups.ids()))
    assert fetch(bench) == (ErrorCode.NONE, 3)
    check_replay(bench)


def test_more_partitions_reach_the_members_of_a_consumer_group(bench: MachineBench) -> None:
    first = consumer_heartbeat(bench)
    bench.topics.counts["topic"] = 6
    bench.call(lambda machine: machine.topics_changed(bench.now_ms))
    second = consumer_heartbeat(bench, epoch=first.member_epoch)
    assert second.member_epoch > first.member_epoch
    assert second.assignment is not None
    assert second.assignment.topic_partitions[0].partitions == [0, 1, 2, 3, 4, 5]
    check_replay(bench)


def test_a_new_topic_is_assigned_to_members_whose_pattern_it_matches(bench: MachineBench) -> None:
    fields: dict[str, Any] = {"subscribed_topic_names": None, "subscribed_topic_regex": "top.*"}
    first = consumer_heartbeat(bench, **fields)
    bench.topics.make("topology", 1)
    bench.topics.make("other", 1)
    bench.call(lambda machine: machine.topics_changed(bench.now_ms))
    second = consumer_heartbeat(bench, epoch=first.member_epoch)
    assert second.assignment is not None
    assert len(second.assignment.topic_partitions) == 2


# Failover
