"""A group machine: groups that are converted between the protocols."""

import pytest
from tests.support.group_calls import (
    GROUP,
    ask_to_join,
    check_replay,
    commit,
    consumer_heartbeat,
    delete_group,
    fetch,
    group_kind,
    heartbeat,
    leave,
    new_member_id,
    stable_member,
)
from tests.support.group_machines import MachineBench, durable

from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.settings import GroupSettings


def test_an_empty_classic_group_becomes_a_consumer_group(bench: MachineBench) -> None:
    member_id, generation = stable_member(bench)
    commit(bench, 7, member_id, generation)
    leave(bench, member_id)
    joined = consumer_heartbeat(bench)
    assert joined.error_code == ErrorCode.NONE
    assert group_kind(bench) is ConsumerGroup
    assert fetch(bench) == (ErrorCode.NONE, 7)
    check_replay(bench)


def test_a_group_of_simple_consumers_becomes_a_consumer_group(bench: MachineBench) -> None:
    commit(bench, 7)
    epoch = consumer_heartbeat(bench).member_epoch
    assert commit(bench, 8) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(bench, 8, "modern", epoch) == ErrorCode.NONE
    check_replay(bench)


def empty_consumer_group(bench: MachineBench) -> None:
    epoch = consumer_heartbeat(bench).member_epoch
    commit(bench, 7, "modern", epoch)
    consumer_heartbeat(bench, epoch=-1)


def test_an_empty_consumer_group_becomes_a_classic_group(bench: MachineBench) -> None:
    empty_consumer_group(bench)
    stable_member(bench)
    assert group_kind(bench) is ClassicGroup
    assert fetch(bench) == (ErrorCode.NONE, 7)
    check_replay(bench)
    bench.fail_over()
    assert group_kind(bench) is ClassicGroup


def test_no_record_of_the_consumer_group_is_left(bench: MachineBench) -> None:
    empty_consumer_group(bench)
    member_id, _ = stable_member(bench)
    leave(bench, member_id)
    assert delete_group(bench) == ErrorCode.NONE
    assert durable(bench.replayed_compacted()) == {"offsets": ({}, {})}


def test_it_stays_a_consumer_group_until_classic_members_have_joined(bench: MachineBench) -> None:
    empty_consumer_group(bench)
    new_member_id(bench)
    assert group_kind(bench) is ClassicGroup
    check_replay(bench)
    bench.pass_time(10_000)
    assert group_kind(bench) is ConsumerGroup
    check_replay(bench)


def test_it_may_be_deleted_in_between(bench: MachineBench) -> None:
    empty_consumer_group(bench)
    new_member_id(bench)
    assert delete_group(bench) == ErrorCode.NONE
    assert durable(bench.replayed()) == {"offsets": ({}, {})}
    check_replay(bench)


def test_a_consumer_comes_back_before_the_classic_members_have_joined(bench: MachineBench) -> None:
    empty_consumer_group(bench)
    classic = ask_to_join(bench, new_member_id(bench))
    modern = consumer_heartbeat(bench)
    assert classic.value.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert modern.error_code == ErrorCode.NONE
    assert group_kind(bench) is ConsumerGroup
    check_replay(bench)


def test_a_classic_group_with_members_is_upgraded(bench: MachineBench) -> None:
    member_id, generation = stable_member(bench)
    commit(bench, 7, member_id, generation)
    modern = consumer_heartbeat(bench)
    assert modern.error_code == ErrorCode.NONE
    assert group_kind(bench) is ConsumerGroup
    described = bench.call(lambda machine: machine.describe_consumer_group(GROUP))
    assert {member.member_id for member in described.members} == {member_id, "modern"}
    assert heartbeat(bench, member_id, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert commit(bench, 8, member_id, generation) == ErrorCode.NONE
    assert fetch(bench) == (ErrorCode.NONE, 8)
    check_replay(bench)


def test_an_upgrade_that_cannot_be_written_changes_nothing(bench: MachineBench) -> None:
    member_id, generation = stable_member(bench)
    before = durable(bench.machine)
    bench.disk_is_full = True
    with pytest.raises(KafkaError):
        consumer_heartbeat(bench)
    bench.disk_is_full = False
    assert durable(bench.machine) == before
    assert heartbeat(bench, member_id, generation) == ErrorCode.NONE
    assert consumer_heartbeat(bench).error_code == ErrorCode.NONE
    check_replay(bench)


def test_an_upgrade_may_be_forbidden(bench: MachineBench) -> None:
    strict = MachineBench(
        GroupSettings(initial_rebalance_delay_ms=100, migration_policy="disabled"), bench.topics
    )
    member_id, generation = stable_member(strict)
    assert consumer_heartbeat(strict).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert heartbeat(strict, member_id, generation) == ErrorCode.NONE


def test_a_consumer_group_with_classic_members_only_is_downgraded(bench: MachineBench) -> None:
    member_id, generation = stable_member(bench)
    consumer_heartbeat(bench)
    consumer_heartbeat(bench, epoch=-1)
    bench.pass_time(0)
    assert group_kind(bench) is ClassicGroup
    group = bench.machine.groups.find(GROUP)
    assert isinstance(group, ClassicGroup)
    assert [member.id for member in group.members] == [member_id]
    assert heartbeat(bench, member_id, group.generation) == ErrorCode.REBALANCE_IN_PROGRESS
    check_replay(bench)
    joined = ask_to_join(bench, member_id)
    assert joined.value.error_code == ErrorCode.NONE
    assert joined.value.generation_id > generation


def test_members_of_a_downgraded_group_commit_before_they_join_again(bench: MachineBench) -> None:
    member_id, _ = stable_member(bench)
    consumer_heartbeat(bench)
    generation = ask_to_join(bench, member_id).value.generation_id
    consumer_heartbeat(bench, epoch=-1)
    bench.pass_time(0)
    assert group_kind(bench) is ClassicGroup
    assert heartbeat(bench, member_id, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert commit(bench, 7, member_id, generation) == ErrorCode.NONE
    assert heartbeat(bench, member_id, generation + 1) == ErrorCode.ILLEGAL_GENERATION


def test_a_crash_right_after_the_downgrade_does_not_lose_the_rebalance(bench: MachineBench) -> None:
    """The partitions of the last consumer member are free: all must join again, on any coordinator."""
    member_id, _ = stable_member(bench)
    consumer_heartbeat(bench)
    consumer_heartbeat(bench, epoch=-1)
    (downgrade,) = [key for key in bench.timers if "downgrade" in key]
    del bench.timers[downgrade]
    bench.call(lambda machine: machine.lapse(downgrade, bench.now_ms))
    assert group_kind(bench) is ClassicGroup
    bench.fail_over()
    group = bench.machine.groups.find(GROUP)
    assert isinstance(group, ClassicGroup)
    assert heartbeat(bench, member_id, group.generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert ask_to_join(bench, member_id).value.error_code == ErrorCode.NONE


def test_timers_of_the_kind_a_group_no_longer_has_do_nothing(bench: MachineBench) -> None:
    consumer_heartbeat(bench)
    for key in [("group", GROUP, "pending", "m"), ("group", GROUP, "sync"), ("group", "gone", "join")]:
        step = bench.machine.lapse(key, bench.now_ms)
        assert (step.records, step.timers) == ([], [])
