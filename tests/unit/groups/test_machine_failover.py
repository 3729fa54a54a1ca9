"""A group machine: what survives a failover, and which records the journal may have."""

import logging

import pytest
from tests.support.group_calls import (
    SETTINGS,
    ask_to_join,
    check_replay,
    commit,
    heartbeat,
    listed,
    new_member_id,
    stable_member,
)
from tests.support.group_machines import FakeTopics, MachineBench

from barnabas.coordination.step import JournalRecord, Machine
from barnabas.errors import ErrorCode
from barnabas.groups.machine import GroupMachine


def test_a_stable_group_goes_on_after_a_failover(bench: MachineBench) -> None:
    member_id, generation = stable_member(bench)
    commit(bench, 7, member_id, generation)
    bench.fail_over()
    assert heartbeat(bench, member_id, generation) == ErrorCode.NONE
    assert commit(bench, 8, member_id, generation) == ErrorCode.NONE
    bench.pass_time(10_000)
    assert heartbeat(bench, member_id, generation) == ErrorCode.UNKNOWN_MEMBER_ID
    check_replay(bench)


def test_parked_calls_are_refused_when_the_partition_moves(bench: MachineBench) -> None:
    waiting = ask_to_join(bench, new_member_id(bench))
    bench.call(lambda machine: machine.moved_away(bench.now_ms))
    assert waiting.value.error_code == ErrorCode.NOT_COORDINATOR
    assert bench.timers == {}


def test_records_of_unknown_types_are_logged_once(
    bench: MachineBench, caplog: pytest.LogCaptureFixture
) -> None:
    share_group = JournalRecord(b"\x00\x0a\x00\x01g\x00\x01m", b"\x00\x00")
    with caplog.at_level(logging.WARNING):
        bench.machine.apply(share_group, None)
        bench.machine.apply(share_group, None)
    assert [record.getMessage() for record in caplog.records] == [
        "skipping records of unknown type 10 in __consumer_offsets"
    ]
    assert listed(bench) == []


@pytest.mark.parametrize("key", ["session", ("group",), ("group", "g"), ("other", "g", "join")])
def test_a_timer_that_belongs_to_no_group_is_a_defect(bench: MachineBench, key: object) -> None:
    with pytest.raises(ValueError, match="is not the key of a group's timer"):
        bench.machine.lapse(key, 0)


# Conversions


def test_the_machine_is_what_the_runtime_needs() -> None:
    machine: Machine = GroupMachine(SETTINGS, FakeTopics())
    assert machine.loaded(0).records == []
