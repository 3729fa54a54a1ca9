"""AddPartitionsToTxn and AddOffsetsToTxn: what is in a transaction, and who may add to it."""

from typing import Any

import pytest

from barnabas.coordination.step import Timer
from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.transactions.batches import response_of, transactions_of
from barnabas.transactions.metadata import Transaction
from barnabas.transactions.states import State
from barnabas.transactions.steps import timeout_key
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

NONE = ErrorCode.NONE
A, B = TopicPartition("a", 0), TopicPartition("b", 1)


def test_the_first_partition_begins_the_transaction_and_its_timeout(story: Any) -> None:
    story.init()
    began_ms = story.now_ms
    assert story.add((4000, 0), A) is NONE
    transaction = story.transaction()
    assert transaction.state is State.ONGOING
    assert (transaction.start_ms, transaction.partitions) == (began_ms, {A})
    assert story.step.timers == [Timer(timeout_key("tx", transaction), 60_000)]


def test_a_further_partition_does_not_move_the_start(story: Any) -> None:
    story.init()
    story.add((4000, 0), A)
    start_ms = story.transaction().start_ms
    assert story.add((4000, 0), B) is NONE
    assert (story.transaction().start_ms, story.transaction().partitions) == (start_ms, {A, B})
    assert not story.step.timers


def test_a_partition_that_was_added_before_writes_no_record(story: Any) -> None:
    story.init()
    story.add((4000, 0), A, B)
    assert story.add((4000, 0), B) is NONE
    assert not story.step.records


@pytest.mark.parametrize(("version", "client_version"), [(0, 0), (3, 0), (4, 2), (5, 2)])
def test_the_request_version_gives_the_client_version(story: Any, version: int, client_version: int) -> None:
    story.init()
    story.add((4000, 0), A, version=version)
    assert story.transaction().client_version == client_version


@pytest.mark.parametrize("verify_only", [False, True])
def test_other_producers_are_refused(story: Any, verify_only: bool) -> None:
    story.init()
    story.init()
    options = {"verify_only": verify_only}
    assert story.add((4000, 0), **options) is ErrorCode.PRODUCER_FENCED
    assert story.add((4000, 2), **options) is ErrorCode.PRODUCER_FENCED
    assert story.add((4001, 1), **options) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert story.add((4000, 1), transactional_id="new", **options) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert story.add((4000, 1), transactional_id="", **options) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 1])
def test_older_clients_get_the_older_code_for_fenced(story: Any, version: int) -> None:
    story.init()
    story.init()
    assert story.add((4000, 0), version=version) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert story.add_offsets((4000, 0), 1, version=version) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert story.add_offsets((4000, 0), 1, version=2) is ErrorCode.PRODUCER_FENCED


def test_the_next_transaction_waits_for_the_markers_of_the_last(story: Any) -> None:
    story.init()
    story.add((4000, 0))
    story.end((4000, 0), commit=True)
    assert story.add((4000, 1)) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert story.add((4000, 1), verify_only=True) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert story.add_offsets((4000, 1), 1) is ErrorCode.CONCURRENT_TRANSACTIONS
    story.write_markers()
    assert story.add((4000, 1)) is NONE
    assert story.transaction().partitions == {TopicPartition("orders", 0)}


def test_a_client_whose_id_is_used_up_waits_too(story: Any) -> None:
    story.put(Transaction(7, 60_000, 1, 32766))
    story.add((7, 32766))
    story.end((7, 32766), commit=True)
    assert story.given() == (4000, 0)
    assert story.add((4000, 0)) is ErrorCode.CONCURRENT_TRANSACTIONS
    story.write_markers()
    assert story.add((4000, 0)) is NONE


def test_verification_says_what_was_added_and_adds_nothing(story: Any) -> None:
    story.init()
    assert story.add((4000, 0), A, verify_only=True) is ErrorCode.TRANSACTION_ABORTABLE
    story.add((4000, 0), A)
    assert story.add((4000, 0), A, verify_only=True) is NONE
    assert story.add((4000, 0), B, verify_only=True) is ErrorCode.TRANSACTION_ABORTABLE
    assert story.transaction().partitions == {A}


def test_offsets_are_added_as_the_partition_of_their_group(story: Any) -> None:
    story.init()
    assert story.add_offsets((4000, 0), 17) is NONE
    assert story.transaction().partitions == {TopicPartition("__consumer_offsets", 17)}
    assert story.transaction().client_version == 0


def test_both_forms_of_the_request_are_a_list_of_transactions() -> None:
    topics = [AddPartitionsToTxnTopic(name="a", partitions=[1, 2])]
    old = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=7,
        v3_and_below_producer_epoch=1,
        v3_and_below_topics=topics,
    )
    transaction = AddPartitionsToTxnTransaction(
        transactional_id="tx", producer_id=7, producer_epoch=1, topics=topics
    )
    assert transactions_of(old, 3) == [transaction]
    assert transactions_of(AddPartitionsToTxnRequest(transactions=[transaction]), 4) == [transaction]


def test_both_forms_of_the_answer() -> None:
    topics = [AddPartitionsToTxnTopicResult(name="a")]
    result = AddPartitionsToTxnResult(transactional_id="tx", topic_results=topics)
    assert response_of([result], 3).results_by_topic_v3_and_below == topics
    assert not response_of([result], 3).results_by_transaction
    assert response_of([result], 4).results_by_transaction == [result]
