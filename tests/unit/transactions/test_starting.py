"""InitProducerId: who may start, with which epoch, and which producers that fences."""

from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.transactions.metadata import Transaction
from barnabas.transactions.states import State
from barnabas.transactions.steps import NEEDS_PRODUCER_ID

NONE = ErrorCode.NONE
FENCED = ErrorCode.PRODUCER_FENCED
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS


def test_the_first_producer_gets_a_new_id_and_epoch_0(story: Any) -> None:
    assert story.init() is NONE
    assert story.given() == (4000, 0)
    assert story.transaction().state is State.EMPTY


def test_each_start_raises_the_epoch(story: Any) -> None:
    story.init()
    assert story.init() is NONE
    assert story.given() == (4000, 1)


def test_without_a_new_id_the_caller_must_get_one(story: Any) -> None:
    story.has_ids = False
    assert story.init() is NEEDS_PRODUCER_ID
    assert not story.journal
    story.has_ids = True
    assert story.init() is NONE


@pytest.mark.parametrize("timeout_ms", [-1, 0, 900_001])
def test_timeouts_are_bounded(story: Any, timeout_ms: int) -> None:
    assert story.init(transaction_timeout_ms=timeout_ms) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert story.given() == (-1, -1)
    assert not story.journal


def test_the_longest_timeout_is_accepted(story: Any) -> None:
    assert story.init(transaction_timeout_ms=900_000) is NONE


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"producer": (1, -1)}, ErrorCode.INVALID_REQUEST),
        ({"producer": (-1, 1)}, ErrorCode.INVALID_REQUEST),
        ({"enable2_pc": True}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"keep_prepared_txn": True}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_invalid_requests_are_refused(story: Any, fields: dict[str, Any], code: ErrorCode) -> None:
    assert story.init(**fields) is code


def test_a_producer_continues_after_an_error(story: Any) -> None:
    story.init()
    assert story.init((4000, 0)) is NONE
    assert story.given() == (4000, 1)


def test_a_repeated_request_gets_the_same_answer(story: Any) -> None:
    story.init()
    story.init((4000, 0))
    assert story.init((4000, 0)) is NONE
    assert story.given() == (4000, 1)


def test_a_repeat_after_another_start_is_fenced(story: Any) -> None:
    story.init()
    story.init((4000, 0))
    story.init()
    assert story.init((4000, 1)) is FENCED
    assert story.init((4000, 0)) is FENCED


def test_the_epoch_before_is_not_known_after_a_failover(story: Any) -> None:
    story.init()
    story.init((4000, 0))
    story.fail_over()
    assert story.init((4000, 0)) is FENCED
    assert story.init((4000, 1)) is NONE


def test_a_step_that_was_not_appended_changes_nothing(story: Any) -> None:
    story.init()
    applied, story.machine.apply = story.machine.apply, lambda record, producer: None
    story.init((4000, 0))
    story.machine.apply = applied
    story.init()
    assert story.given() == (4000, 1)
    assert story.init((4000, 0)) is FENCED, "it was another producer that got epoch 1"


def test_an_id_that_is_not_known_any_more_gets_a_new_producer_id(story: Any) -> None:
    assert story.init((77, 3)) is NONE
    assert story.given() == (4000, 0)


@pytest.mark.parametrize(
    ("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, FENCED), (5, FENCED)]
)
def test_older_clients_get_the_older_code_for_fenced(story: Any, version: int, code: ErrorCode) -> None:
    story.init()
    assert story.init((9, 0), version=version) is code


@pytest.mark.parametrize("level", [1, 2])
def test_a_new_producer_aborts_the_transaction_of_the_old_one(new_story: Any, level: int) -> None:
    story = new_story(transaction_version=level)
    story.init()
    story.add((4000, 0))
    assert story.init() is CONCURRENT
    assert story.given() == (-1, -1)
    (markers,) = story.markers
    assert (markers.producer_id, markers.producer_epoch, markers.is_commit) == (4000, 1, False)
    assert markers.coordinator_epoch == 5
    assert story.init() is CONCURRENT, "until every partition knows"
    story.write_markers()
    assert story.init() is NONE
    assert story.given() == (4000, 2)
    assert story.add((4000, 0)) is FENCED
    assert story.add((4000, 1)) is FENCED


def test_a_late_request_of_a_fenced_producer_does_not_abort_its_successor(story: Any) -> None:
    story.init()
    story.init()
    story.add((4000, 1))
    assert story.init((4000, 0)) is FENCED
    assert story.transaction().state is State.ONGOING


def test_the_producer_itself_may_start_over_within_its_transaction(story: Any) -> None:
    story.init()
    story.add((4000, 0))
    assert story.init((4000, 0)) is CONCURRENT
    story.write_markers()
    assert story.init((4000, 0)) is NONE, "the abort was its own, so this is a repeat"
    assert story.given() == (4000, 1)


def test_an_id_without_epochs_left_is_replaced(story: Any) -> None:
    story.put(Transaction(7, 60_000, 1, 32766))
    assert story.init() is NONE
    assert story.given() == (4000, 0)
    assert story.transaction().previous_producer_id == 7


def test_a_repeat_of_the_request_that_used_up_the_id(story: Any) -> None:
    story.put(Transaction(7, 60_000, 1, 32766))
    assert story.init((7, 32766)) is NONE
    assert story.init((7, 32766)) is NONE
    assert story.given() == (4000, 0)


def test_the_last_epoch_can_be_asked_for_twice(story: Any) -> None:
    story.put(Transaction(7, 60_000, 1, 32765))
    story.init((7, 32765))
    assert story.given() == (7, 32766)
    assert story.init((7, 32765)) is NONE
    assert story.given() == (7, 32766)
    assert story.init((7, 100)) is FENCED


@pytest.mark.parametrize("level", [1, 2])
def test_fencing_the_last_epoch(new_story: Any, level: int) -> None:
    story = new_story(transaction_version=level)
    story.put(Transaction(7, 60_000, 1, 32766))
    story.add((7, 32766))
    assert story.init() is CONCURRENT
    assert story.markers[0].producer_epoch == 32767
    story.write_markers()
    assert story.init() is NONE
    producer_id, epoch = story.given()
    assert producer_id != 7
    assert epoch == (0 if level == 1 else 1)


def test_fencing_the_last_epoch_waits_for_a_fresh_id(story: Any) -> None:
    story.put(Transaction(7, 60_000, 1, 32766))
    story.add((7, 32766))
    story.has_ids = False
    assert story.init() is NEEDS_PRODUCER_ID
    assert story.transaction().state is State.ONGOING
