"""A group machine: who may commit offsets, and how they are kept."""

import pytest
from tests.support.group_calls import (
    GROUP,
    ask_to_join,
    check_replay,
    commit,
    consumer_heartbeat,
    fetch,
    leave,
    listed,
    new_member_id,
    stable_member,
    txn_commit,
)
from tests.support.group_machines import MachineBench

from barnabas.coordination.step import Producer
from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition


def test_a_member_commits_and_finds_its_offset_again(bench: MachineBench) -> None:
    member_id, generation = stable_member(bench)
    assert commit(bench, 7, member_id, generation) == ErrorCode.NONE
    assert fetch(bench) == (ErrorCode.NONE, 7)
    check_replay(bench)


def test_a_standalone_consumer_with_the_groups_name_may_not_commit(bench: MachineBench) -> None:
    member_id, generation = stable_member(bench)
    commit(bench, 7, member_id, generation)
    assert commit(bench, 99) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(bench, 99, "stranger", generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert fetch(bench) == (ErrorCode.NONE, 7)


def test_a_standalone_consumer_commits_where_there_is_no_group(bench: MachineBench) -> None:
    assert commit(bench, 7) == ErrorCode.NONE
    assert commit(bench, 8) == ErrorCode.NONE
    assert fetch(bench) == (ErrorCode.NONE, 8)
    assert [(group.group_id, group.protocol_type, group.group_state) for group in listed(bench)] == [
        (GROUP, "", "Empty")
    ]
    check_replay(bench)


def test_an_empty_group_takes_commits_of_clients_that_are_no_members(bench: MachineBench) -> None:
    member_id, generation = stable_member(bench)
    leave(bench, member_id)
    assert commit(bench, 9, member_id, generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(bench, 9) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_generation_needs_a_group(bench: MachineBench, version: int, error: ErrorCode) -> None:
    assert commit(bench, 7, "m", 3, version=version) == error
    assert bench.journal == []


def test_a_commit_of_another_generation_is_refused(bench: MachineBench) -> None:
    member_id, generation = stable_member(bench)
    assert commit(bench, 7, member_id, generation - 1) == ErrorCode.ILLEGAL_GENERATION
    assert txn_commit(bench, 7, member_id, generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert fetch(bench) == (ErrorCode.NONE, -1)


def test_a_commit_between_join_and_sync_must_wait(bench: MachineBench) -> None:
    joined = ask_to_join(bench, new_member_id(bench))
    bench.pass_time(100)
    member_id, generation = joined.value.member_id, joined.value.generation_id
    assert commit(bench, 7, member_id, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert txn_commit(bench, 7, member_id, generation) == ErrorCode.NONE


def test_a_static_member_that_was_replaced_is_fenced(bench: MachineBench) -> None:
    member_id, generation = stable_member(bench, "static")
    successor = ask_to_join(bench, "", "static").value
    assert successor.error_code == ErrorCode.NONE
    assert successor.member_id != member_id
    assert commit(bench, 7, member_id, generation, group_instance_id="static") == ErrorCode.FENCED_INSTANCE_ID
    assert commit(bench, 7, successor.member_id, generation, group_instance_id="static") == ErrorCode.NONE
    check_replay(bench)


def test_commits_keep_a_member_alive(bench: MachineBench) -> None:
    member_id, generation = stable_member(bench)
    for _ in range(5):
        bench.pass_time(9_000)
        assert commit(bench, 7, member_id, generation) == ErrorCode.NONE
    bench.pass_time(10_000)
    assert commit(bench, 7, member_id, generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_of_the_consumer_protocol_commits_at_its_epoch(bench: MachineBench) -> None:
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


def test_offsets_of_a_transaction_show_when_it_commits(bench: MachineBench) -> None:
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


def test_offsets_of_an_aborted_transaction_never_show(bench: MachineBench) -> None:
    txn_commit(bench, 20)
    bench.marker(Producer(5, 0), is_commit=False)
    assert fetch(bench, stable=True) == (ErrorCode.NONE, -1)
    check_replay(bench)


def test_a_transaction_needs_a_group_id_and_for_a_generation_a_group(bench: MachineBench) -> None:
    assert txn_commit(bench, group="") == ErrorCode.INVALID_GROUP_ID
    assert txn_commit(bench, generation=3) == ErrorCode.ILLEGAL_GENERATION


# Groups that do not exist


def test_a_partition_of_a_topic_that_is_gone_is_still_fetched(bench: MachineBench) -> None:
    commit(bench, 7)
    del bench.topics.counts["topic"]
    assert fetch(bench) == (ErrorCode.NONE, 7)
    stored = bench.machine.groups.offsets.get(GROUP, TopicPartition("topic", 0))
    assert stored is not None
