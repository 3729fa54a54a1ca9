"""EndTxn in both versions, row by row, and the markers."""

from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.transactions.metadata import Transaction
from barnabas.transactions.states import State
from barnabas.transactions.steps import NEEDS_PRODUCER_ID, timeout_key

NONE = ErrorCode.NONE
FENCED = ErrorCode.PRODUCER_FENCED
INVALID_STATE = ErrorCode.INVALID_TXN_STATE
A, B = TopicPartition("a", 0), TopicPartition("b", 1)


def in_state(story: Any, state: State) -> None:
    """Producer 7 has epoch 5."""
    partitions = frozenset({A}) if state is State.ONGOING else frozenset()
    story.put(Transaction(7, 60_000, 1, 5, state, 7, partitions=partitions, start_ms=1))


@pytest.mark.parametrize(
    ("state", "commit", "code", "after"),
    [
        (State.EMPTY, False, INVALID_STATE, State.EMPTY),
        (State.EMPTY, True, INVALID_STATE, State.EMPTY),
        (State.ONGOING, False, NONE, State.PREPARE_ABORT),
        (State.ONGOING, True, NONE, State.PREPARE_COMMIT),
        (State.COMPLETE_ABORT, False, NONE, State.COMPLETE_ABORT),
        (State.COMPLETE_ABORT, True, INVALID_STATE, State.COMPLETE_ABORT),
        (State.COMPLETE_COMMIT, False, INVALID_STATE, State.COMPLETE_COMMIT),
        (State.COMPLETE_COMMIT, True, NONE, State.COMPLETE_COMMIT),
    ],
)
@pytest.mark.parametrize("version", [0, 1, 4])
def test_version_1_rows(
    story: Any, state: State, commit: bool, code: ErrorCode, after: State, version: int
) -> None:
    in_state(story, state)
    assert story.end((7, 5), commit=commit, version=version) is code
    assert (story.transaction().state, story.transaction().epoch) == (after, 5)
    assert story.given() == (-1, -1)


@pytest.mark.parametrize(
    ("state", "commit", "current", "repeat"),
    [
        (State.EMPTY, False, NONE, FENCED),
        (State.EMPTY, True, INVALID_STATE, FENCED),
        (State.ONGOING, False, NONE, FENCED),
        (State.ONGOING, True, NONE, FENCED),
        (State.COMPLETE_ABORT, False, NONE, NONE),
        (State.COMPLETE_ABORT, True, INVALID_STATE, INVALID_STATE),
        (State.COMPLETE_COMMIT, False, NONE, INVALID_STATE),
        (State.COMPLETE_COMMIT, True, INVALID_STATE, NONE),
    ],
)
def test_version_2_rows(
    story: Any, state: State, commit: bool, current: ErrorCode, repeat: ErrorCode
) -> None:
    in_state(story, state)
    before = story.transaction()
    assert story.end((7, 4), commit=commit) is repeat
    assert story.given() == ((7, 5) if repeat is NONE else (-1, -1))
    assert story.transaction() == before, "a repeat changes nothing"
    assert story.end((7, 5), commit=commit) is current
    assert story.given() == ((7, 6) if current is NONE else (-1, -1))
    assert story.transaction().epoch == (6 if current is NONE else 5)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("state", [State.EMPTY, State.ONGOING, State.COMPLETE_COMMIT])
def test_other_producers_are_refused(story: Any, version: int, state: State) -> None:
    in_state(story, state)
    for epoch in (3, 6):
        assert story.end((7, epoch), commit=True, version=version) is FENCED
    for producer, transactional_id in (((8, 5), "tx"), ((7, 5), "other")):
        code = story.end(producer, commit=True, version=version, transactional_id=transactional_id)
        assert code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    code = story.end((7, 5), commit=True, version=version, transactional_id="")
    assert code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, FENCED)])
def test_older_clients_get_the_older_code_for_fenced(story: Any, version: int, code: ErrorCode) -> None:
    in_state(story, State.ONGOING)
    assert story.end((7, 4), commit=True, version=version) is code


@pytest.mark.parametrize(("version", "epoch"), [(4, 5), (5, 6)])
@pytest.mark.parametrize("commit", [False, True])
def test_a_transaction_ends_when_every_partition_has_its_marker(
    story: Any, version: int, epoch: int, commit: bool
) -> None:
    in_state(story, State.ONGOING)
    ongoing = story.transaction()
    assert story.end((7, 5), commit=commit, version=version) is NONE
    assert story.step.cancelled == [timeout_key("tx", ongoing)]
    (markers,) = story.step.markers
    assert markers == ("tx", 7, epoch, 5, commit, {A}, 2 if version == 5 else 0)
    assert story.end((7, 5), commit=commit, version=version) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert story.end((7, 5), commit=not commit, version=version) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert story.write_markers() is None
    transaction = story.transaction()
    assert transaction.state is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT)
    assert (transaction.epoch, transaction.partitions) == (epoch, frozenset())
    assert story.end((7, 5), commit=commit, version=version) is NONE, "the repeat is answered alike"


def test_an_abort_without_partitions_needs_no_marker(story: Any) -> None:
    in_state(story, State.EMPTY)
    now_ms = story.now_ms
    story.end((7, 5), commit=False)
    assert not story.step.markers
    assert len(story.step.records) == 2
    assert story.transaction().state is State.COMPLETE_ABORT
    assert story.transaction().start_ms == now_ms


def test_partitions_may_answer_one_after_the_other(story: Any) -> None:
    in_state(story, State.ONGOING)
    story.add((7, 5), B)
    story.end((7, 5), commit=True)
    (markers,) = story.markers
    for partition, state in ((A, State.PREPARE_COMMIT), (B, State.COMPLETE_COMMIT)):
        part = markers._replace(partitions=frozenset({partition}))
        assert story.run(story.machine.markers_written(part, {partition: NONE}, story.now_ms)) is None
        assert story.transaction().state is state


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_marker_that_failed_is_written_again(story: Any, code: ErrorCode) -> None:
    in_state(story, State.ONGOING)
    story.add((7, 5), B)
    story.end((7, 5), commit=True)
    (markers,) = story.markers
    again = story.run(story.machine.markers_written(markers, {A: NONE, B: code}, story.now_ms))
    assert again == markers._replace(partitions=frozenset({B}))
    story.run(story.machine.markers_written(again, {B: NONE}, story.now_ms))
    assert story.transaction().state is State.COMPLETE_COMMIT


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
def test_a_coordinator_that_was_superseded_stops(story: Any, code: ErrorCode) -> None:
    in_state(story, State.ONGOING)
    story.end((7, 5), commit=True)
    assert story.write_markers(code) is None
    assert story.transaction().state is State.PREPARE_COMMIT


@pytest.mark.parametrize("code", [ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION])
def test_a_partition_that_cannot_take_markers_has_no_records_either(story: Any, code: ErrorCode) -> None:
    in_state(story, State.ONGOING)
    story.end((7, 5), commit=True)
    story.write_markers(code)
    assert story.transaction().state is State.COMPLETE_COMMIT


def test_each_transaction_needs_its_own_markers(story: Any) -> None:
    in_state(story, State.ONGOING)
    story.end((7, 5), commit=True, version=4)
    story.write_markers()
    story.add((7, 5), A)
    story.end((7, 5), commit=False, version=4)
    assert story.write_markers(ErrorCode.NOT_LEADER_OR_FOLLOWER) is not None
    assert story.transaction().state is State.PREPARE_ABORT


def test_late_answers_about_markers_change_nothing(story: Any) -> None:
    in_state(story, State.ONGOING)
    story.end((7, 5), commit=True)
    (old,) = story.markers
    story.write_markers()
    story.add((7, 6), A)
    story.end((7, 6), commit=False)
    assert story.run(story.machine.markers_written(old, {A: NONE}, story.now_ms)) is None
    assert story.transaction().state is State.PREPARE_ABORT
    other_coordinator = story.markers[0]._replace(coordinator_epoch=4)
    assert story.run(story.machine.markers_written(other_coordinator, {A: NONE}, story.now_ms)) is None
    assert story.transaction().state is State.PREPARE_ABORT


def test_a_completion_that_was_not_appended_is_tried_again(story: Any) -> None:
    in_state(story, State.ONGOING)
    story.end((7, 5), commit=True)
    (markers,) = story.markers
    lost = story.machine.markers_written(markers, {A: NONE}, story.now_ms)
    assert lost.records
    assert story.run(story.machine.markers_written(markers, {}, story.now_ms)) is None
    assert story.transaction().state is State.COMPLETE_COMMIT


def test_the_last_epoch_ends_with_a_new_id(story: Any) -> None:
    story.put(Transaction(7, 60_000, 1, 32766))
    story.add((7, 32766), A)
    story.has_ids = False
    assert story.end((7, 32766), commit=True) is NEEDS_PRODUCER_ID
    assert story.transaction().state is State.ONGOING
    story.has_ids = True
    assert story.end((7, 32766), commit=True) is NONE
    assert story.given() == (4000, 0)
    assert (story.markers[0].producer_id, story.markers[0].producer_epoch) == (7, 32767)
    story.write_markers()
    assert (story.transaction().producer_id, story.transaction().epoch) == (4000, 0)
    assert story.end((7, 32766), commit=True) is NONE
    assert story.given() == (4000, 0)
    assert story.end((7, 32766), commit=False) is INVALID_STATE
    assert story.end((7, 32765), commit=True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_version_1_clients_use_up_no_epochs(story: Any) -> None:
    story.put(Transaction(7, 60_000, 1, 32766))
    story.add((7, 32766), A, version=3)
    assert story.end((7, 32766), commit=True, version=4) is NONE
    story.write_markers()
    assert (story.transaction().producer_id, story.transaction().epoch) == (7, 32766)
