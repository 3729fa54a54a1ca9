"""Timeouts, expiration and failover: what happens without a request of a client."""

from typing import Any

import pytest

from barnabas.coordination.step import Timer
from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.transactions.machine import EXPIRED_PER_STEP, PRODUCER_ID_WAIT_MS
from barnabas.transactions.metadata import TIMEOUT_NEVER_MS, Transaction
from barnabas.transactions.records import tombstone
from barnabas.transactions.states import AT_REST, State
from barnabas.transactions.steps import EXPIRATION, timeout_key

NONE = ErrorCode.NONE
A = TopicPartition("a", 0)
WEEK_MS = 7 * 24 * 3600 * 1000


def lapse(story: Any, key: Any) -> None:
    story.run(story.machine.lapse(key, story.now_ms))


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_transaction_that_times_out_is_aborted_and_its_producer_fenced(new_story: Any, level: int) -> None:
    story = new_story(transaction_version=level)
    story.init()
    story.add((4000, 0), A, version=3)
    (timer,) = story.step.timers
    lapse(story, timer.key)
    (markers,) = story.markers
    assert (markers.producer_epoch, markers.is_commit, markers.partitions) == (1, False, {A})
    assert story.transaction().state is State.PREPARE_ABORT
    story.write_markers()
    assert story.end((4000, 0), commit=True, version=4) is ErrorCode.PRODUCER_FENCED
    assert story.add((4000, 0), version=3) is ErrorCode.PRODUCER_FENCED


def test_a_version_2_client_continues_after_a_timeout(story: Any) -> None:
    story.init()
    story.add((4000, 0))
    lapse(story, story.step.timers[0].key)
    story.write_markers()
    assert story.end((4000, 0), commit=True) is ErrorCode.INVALID_TXN_STATE
    assert story.end((4000, 0), commit=False) is NONE
    assert story.given() == (4000, 1)
    assert story.add((4000, 1)) is NONE


def test_a_timer_cannot_end_a_later_transaction(story: Any) -> None:
    story.init()
    story.add((4000, 0), version=3)
    late = story.step.timers[0].key
    story.end((4000, 0), commit=True, version=4)
    lapse(story, late)
    assert story.transaction().state is State.PREPARE_COMMIT
    story.write_markers()
    lapse(story, late)
    story.add((4000, 0), version=3)
    lapse(story, late)
    assert story.transaction().state is State.ONGOING


def test_a_timeout_that_needs_a_new_id_waits_for_one(story: Any) -> None:
    story.put(Transaction(7, 60_000, 1, 32766))
    story.add((7, 32766))
    (timer,) = story.step.timers
    story.has_ids = False
    lapse(story, timer.key)
    assert story.step.timers == [Timer(timer.key, PRODUCER_ID_WAIT_MS)]
    story.has_ids = True
    lapse(story, timer.key)
    story.write_markers()
    # KAFKA-20090: a late abort must not get an epoch that cannot be raised any more.
    assert story.end((7, 32766), commit=False) is NONE
    assert story.given() == (4000, 0)


IN_A_LOG = [state for state in State if state not in (State.DEAD, State.PREPARE_EPOCH_FENCE)]


@pytest.mark.parametrize("state", IN_A_LOG, ids=lambda state: state.name)
def test_ids_expire_only_without_an_open_transaction(story: Any, state: State) -> None:
    story.put(Transaction(7, 60_000, story.now_ms - WEEK_MS, 5, state))
    lapse(story, EXPIRATION)
    assert ("tx" not in story.machine.transactions) == (state in AT_REST)
    assert story.step.records == ([tombstone("tx")] if state in AT_REST else [])
    assert story.step.timers == [Timer(EXPIRATION, 3_600_000)]


def test_ids_in_use_do_not_expire(story: Any) -> None:
    story.put(Transaction(7, 60_000, story.now_ms - WEEK_MS + 1, 5))
    lapse(story, EXPIRATION)
    assert "tx" in story.machine.transactions


def test_an_expired_id_starts_from_the_beginning(story: Any) -> None:
    story.put(Transaction(7, 60_000, story.now_ms - WEEK_MS, 5))
    lapse(story, EXPIRATION)
    assert story.add((7, 5)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert story.init((7, 5)) is NONE
    assert story.given() == (4000, 0)
    story.fail_over()
    assert story.transaction().producer_id == 4000


def test_many_expired_ids_are_removed_in_several_steps(story: Any) -> None:
    for number in range(EXPIRED_PER_STEP + 1):
        story.put(Transaction(number, 60_000, story.now_ms - WEEK_MS, 5), f"tx-{number}")
    lapse(story, EXPIRATION)
    assert len(story.step.records) == EXPIRED_PER_STEP
    assert story.step.timers == [Timer(EXPIRATION, 0)]
    lapse(story, EXPIRATION)
    assert not story.machine.transactions


def test_a_timer_that_is_not_known_does_nothing(story: Any) -> None:
    lapse(story, ("somebody", "else's"))
    assert not story.step.records


@pytest.mark.parametrize("passed_ms", [0, 1_000, 59_999, 60_000, 90_000, -5_000])
def test_timeouts_continue_after_a_failover(story: Any, passed_ms: int) -> None:
    story.init()
    story.add((4000, 0))
    transaction = story.transaction()
    story.now_ms = transaction.start_ms + passed_ms
    story.fail_over()
    left_ms = min(max(60_000 - passed_ms, 0), 60_000)
    assert story.step.timers == [
        Timer(timeout_key("tx", transaction), left_ms),
        Timer(EXPIRATION, 3_600_000),
    ]


def test_a_transaction_without_a_timeout_gets_no_timer(story: Any) -> None:
    partitions = frozenset({A})
    story.put(Transaction(7, TIMEOUT_NEVER_MS, 1, 5, State.ONGOING, partitions=partitions, start_ms=1))
    story.fail_over()
    assert [timer.key for timer in story.step.timers] == [EXPIRATION]


@pytest.mark.parametrize("commit", [False, True])
@pytest.mark.parametrize("has_markers", [False, True])
def test_a_prepared_transaction_continues_after_a_failover(
    story: Any, commit: bool, has_markers: bool
) -> None:
    story.init()
    story.add((4000, 0), A, TopicPartition("b", 0))
    story.end((4000, 0), commit=commit)
    (before,) = story.markers
    if has_markers:
        story.run(story.machine.markers_written(before, {A: NONE}, story.now_ms))
    story.fail_over()
    (markers,) = story.markers
    assert markers == before._replace(coordinator_epoch=before.coordinator_epoch + 1)
    story.write_markers()
    assert story.transaction().state is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT)


def test_a_prepared_transaction_without_partitions_completes_after_a_failover(story: Any) -> None:
    story.put(Transaction(7, 60_000, 1, 5, State.PREPARE_ABORT, start_ms=1, client_version=2))
    story.fail_over()
    story.write_markers()
    assert story.transaction().state is State.COMPLETE_ABORT


def test_markers_change_nothing_in_this_topic(story: Any) -> None:
    story.init()
    before = dict(story.machine.transactions)
    story.machine.apply_marker((4000, 0), True)
    assert story.machine.transactions == before
