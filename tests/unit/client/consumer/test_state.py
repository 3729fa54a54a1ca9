"""Positions of partitions, and answers that come too late."""

import threading

import pytest

from barnabas.client.consumer.access import Access
from barnabas.client.consumer.buffer_reader import BufferReader
from barnabas.client.consumer.fetched import Fetched, Reading
from barnabas.client.consumer.records import ConsumerRecord, ConsumerRecords
from barnabas.client.consumer.state import COMMITTED, RESET, Assignments, PartitionState
from barnabas.client.errors import ClosedError, ConcurrentAccessError, WakeupError
from barnabas.client.types import TopicPartition
from barnabas.records.builder import build_batch

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def fetched(partition: TopicPartition, base: int, count: int) -> Fetched:
    data = build_batch([(0, None, b"v", ())] * count, base_offset=base, leader_epoch=2)
    return Fetched(partition, memoryview(bytes(data)), base, None, Reading(None, None))


def assigned(*partitions: TopicPartition) -> Assignments:
    assignments = Assignments()
    assignments.replace(partitions)
    for state in assignments.states.values():
        state.move_to(0)
    return assignments


def put(assignments: Assignments, partition: TopicPartition, base: int, count: int) -> None:
    state = assignments.states[partition]
    assignments.put(state, state.version, base, fetched(partition, base, count))


def test_a_partition_that_stays_assigned_keeps_its_position() -> None:
    assignments = assigned(A)
    assignments.states[A].move_to(5)
    assignments.replace([A, B])
    assert assignments.states[A].offset == 5
    assert (assignments.states[B].offset, assignments.states[B].lookup) == (None, COMMITTED)


def test_an_answer_to_a_request_from_before_a_seek_is_dropped() -> None:
    assignments = assigned(A)
    state = assignments.states[A]
    version = state.version
    state.move_to(100)
    assignments.put(state, version, 0, fetched(A, 0, 3))
    assert not state.buffers
    assert not assignments.set_position(state, version, 7, -1)
    assert (state.offset, state.fetch_offset) == (100, 100)


def test_a_second_answer_from_the_same_offset_is_dropped() -> None:
    """After a change of leader, the old and the new leader may both answer."""
    assignments = assigned(A)
    put(assignments, A, 0, 3)
    put(assignments, A, 0, 3)
    put(assignments, A, 3, 1)
    taken = BufferReader(assignments).records(10)
    assert [record.offset for record in taken[A]] == [0, 1, 2, 3]


def test_a_revoked_partition_gets_no_data() -> None:
    assignments = assigned(A)
    state = assignments.states[A]
    assignments.replace([])
    assignments.put(state, state.version, 0, fetched(A, 0, 3))
    assert not state.buffers


def test_taking_records_moves_the_position_and_respects_the_limit() -> None:
    assignments = assigned(A, B)
    put(assignments, A, 0, 3)
    put(assignments, B, 0, 3)
    reader = BufferReader(assignments)
    assert {each: len(records) for each, records in reader.records(4).items()} == {A: 3, B: 1}
    assert [state.offset for state in (assignments.states[A], assignments.states[B])] == [3, 1]
    assert assignments.states[A].epoch == 2
    assert {each: len(records) for each, records in reader.records(4).items()} == {B: 2}
    assert not reader.is_ready()


def test_paused_partitions_keep_their_fetched_data() -> None:
    assignments = assigned(A)
    put(assignments, A, 0, 3)
    assignments.states[A].paused = True
    reader = BufferReader(assignments)
    assert reader.records(10) == {}
    assignments.states[A].paused = False
    assert len(reader.records(10)[A]) == 3


def test_lag_and_lead() -> None:
    assignments = assigned(A, B)
    reader = BufferReader(assignments)
    assert reader.metrics(False)["records-lag-max"] is None
    for partition, offset in ((A, 4), (B, 9)):
        state = assignments.states[partition]
        state.offset, state.high_watermark, state.last_stable_offset, state.log_start_offset = (
            offset,
            10,
            9,
            2,
        )
    metrics = reader.metrics(False)
    assert (metrics["records-lag-max"], metrics["records-lead-min"]) == (6, 2)
    assert metrics["partitions"][B] == {"records-lag": 1, "records-lead": 7}
    assert reader.metrics(True)["records-lag-max"] == 5


def test_a_lookup_forgets_the_old_position() -> None:
    state = PartitionState(A)
    state.move_to(5)
    state.look_up(RESET, -2)
    assert (state.offset, state.fetch_offset, state.lookup, state.reset_timestamp) == (None, -1, RESET, -2)


def test_the_same_error_is_raised_once() -> None:
    assignments = Assignments()
    assignments.fail(ValueError("bad"))
    assignments.fail(ValueError("bad"))
    with pytest.raises(ValueError, match="bad"):
        assignments.raise_error()
    assignments.raise_error()


def test_two_threads_are_refused_at_once_and_one_may_nest() -> None:
    access = Access()
    problems: list[type[Exception]] = []

    def intrude() -> None:
        try:
            with access:
                problems.append(AssertionError)
        except ConcurrentAccessError:
            problems.append(ConcurrentAccessError)

    with access, access:
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
    assert problems == [ConcurrentAccessError]
    with access:
        access.is_closed = True
    with pytest.raises(ClosedError), access:
        problems.clear()


def test_a_wakeup_ends_one_wait() -> None:
    access, signal = Access(), threading.Condition()
    access.wakeup(signal)
    with pytest.raises(WakeupError):
        access.wait(signal, bool, 0.0)
    assert not access.wait(signal, bool, 0.0)


def test_a_wakeup_does_not_disturb_closing() -> None:
    access, signal = Access(), threading.Condition()
    access.is_closed = True
    access.wakeup(signal)
    assert not access.wait(signal, bool, 0.0)
    assert access.wait(signal, lambda: True, 0.0)


def test_listeners_are_called_when_threads_are_notified() -> None:
    assignments = assigned(A)
    calls: list[str] = []
    assignments.signal.listeners.append(lambda: calls.append("notified"))
    put(assignments, A, 0, 3)
    assert calls == ["notified"]


def test_records_by_partition_and_topic() -> None:
    made = [ConsumerRecord("t", 0, 1), ConsumerRecord("t", 1, 2), ConsumerRecord("u", 0, 3)]
    other = TopicPartition("u", 0)
    records = ConsumerRecords({A: made[:1], B: made[1:2], other: made[2:]})
    assert list(records) == made
    assert (len(records), bool(records), records.partitions()) == (3, True, {A, B, other})
    assert records.records("t") == made[:2]
    assert records.records(B) == made[1:2]
    assert ConsumerRecords().is_empty
