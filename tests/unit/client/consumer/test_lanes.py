"""Lanes: order within a lane, positions without gaps, and revoked partitions."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consumer import ConsumerRecord
from barnabas.client.consumer.lanes import Lane, Lanes, Progress
from barnabas.client.types import TopicPartition

PARTITION = TopicPartition("orders", 0)
Taken = tuple[Lane, ConsumerRecord, Progress]


def records(*keys: object, first: int = 0) -> list[ConsumerRecord]:
    return [ConsumerRecord("orders", 0, first + number, key) for number, key in enumerate(keys)]


def take(lanes: Lanes) -> Taken:
    taken = lanes.take()
    assert taken is not None
    return taken


def position(lanes: Lanes) -> int | None:
    uncommitted = lanes.uncommitted().get(PARTITION)
    return None if uncommitted is None else uncommitted.offset


def test_one_worker_at_a_time_has_a_key_and_others_take_other_keys() -> None:
    lanes = Lanes(by_key=True)
    lanes.put(records(b"a", b"a", b"b"))
    first, other = take(lanes), take(lanes)
    assert (first[1].offset, other[1].offset) == (0, 2)
    lanes.done(*other)
    assert position(lanes) is None
    lanes.done(*first)
    assert position(lanes) == 1
    lanes.done(*take(lanes))
    assert position(lanes) == 3
    assert lanes.counts() == {PARTITION: 0}


def test_a_partition_in_order_is_one_lane() -> None:
    lanes = Lanes(by_key=False)
    lanes.put(records(b"a", b"b"))
    lanes.done(*take(lanes))
    assert take(lanes)[1].offset == 1


def test_with_keys_that_are_not_hashable_the_partition_is_one_lane() -> None:
    lanes = Lanes(by_key=True)
    lanes.put(records([1], [2], None, None))
    assert [take(lanes)[1].offset for _ in range(3)] == [0, 2, 3]


@given(st.permutations(range(12)), st.integers(0, 12))
def test_the_position_is_at_the_first_gap(order: list[int], finished: int) -> None:
    lanes = Lanes(by_key=True)
    lanes.put(records(*[None] * 12))
    taken = [take(lanes) for _ in range(12)]
    for number in order[:finished]:
        lanes.done(*taken[number])
    undone = set(order[finished:])
    expected = min(undone, default=12)
    assert (position(lanes) or 0) == expected
    assert lanes.counts()[PARTITION] == 12 - expected


def test_a_position_is_committed_once() -> None:
    lanes = Lanes(by_key=True)
    lanes.put(records(b"a"))
    lanes.done(*take(lanes))
    offsets = lanes.uncommitted()
    lanes.committed(offsets)
    assert lanes.uncommitted() == {}
    assert lanes.uncommitted([TopicPartition("orders", 1)]) == {}


def test_a_revoked_partition_finishes_the_records_before_the_last_one_started() -> None:
    lanes = Lanes(by_key=True)
    lanes.put(records(b"a", b"a", b"b", b"a", b"c"))
    first, third = take(lanes), take(lanes)
    lanes.done(*third)
    lanes.drop_unneeded([PARTITION])
    assert not lanes.wait_idle([PARTITION], time.monotonic())
    lanes.done(*first)
    second = take(lanes)
    assert second[1].offset == 1
    lanes.done(*second)
    assert lanes.wait_idle([PARTITION], time.monotonic())
    assert position(lanes) == 3
    lanes.forget([PARTITION])
    assert lanes.uncommitted() == {} and lanes.counts() == {}


def test_the_outcome_of_a_record_of_a_lost_partition_is_ignored() -> None:
    lanes = Lanes(by_key=True)
    lanes.put(records(b"a", b"a"))
    old = take(lanes)
    lanes.forget([PARTITION])
    # The same partition is assigned again and read from its committed offset.
    lanes.put(records(b"a", b"a"))
    lanes.done(*old)
    assert position(lanes) is None
    again = take(lanes)
    assert again[1].offset == 0
    lanes.done(*again)
    assert position(lanes) == 1


def test_after_a_failure_no_record_is_taken_and_the_position_stays() -> None:
    lanes = Lanes(by_key=True)
    lanes.put(records(b"a", b"b", b"c"))
    bad, good = take(lanes), take(lanes)
    error = ValueError("bad")
    lanes.failed(bad[0], bad[2], error)
    assert lanes.failure is error
    assert lanes.take() is None
    lanes.done(*good)
    assert position(lanes) is None
    assert lanes.wait_empty(time.monotonic())
    assert lanes.wait_idle([PARTITION], time.monotonic())


def test_workers_wait_for_records_and_for_the_end() -> None:
    lanes = Lanes(by_key=True)
    done: list[int] = []

    def work() -> None:
        while (taken := lanes.take()) is not None:
            done.append(taken[1].offset)
            lanes.done(*taken)

    worker = threading.Thread(target=work)
    worker.start()
    lanes.put(records(b"a", b"b"))
    assert lanes.wait_empty(time.monotonic() + 30)
    lanes.end()
    worker.join(30)
    assert sorted(done) == [0, 1]
    assert position(lanes) == 2


@pytest.mark.parametrize("by_key", [True, False])
def test_the_epoch_of_the_last_record_is_committed_with_it(by_key: bool) -> None:
    lanes = Lanes(by_key=by_key)
    lanes.put([ConsumerRecord("orders", 0, 7, leader_epoch=3)])
    lanes.done(*take(lanes))
    assert lanes.uncommitted()[PARTITION][::2] == (8, 3)
