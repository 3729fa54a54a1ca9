"""DescribeTransactions and ListTransactions."""

from collections.abc import Generator
from typing import Any, cast

import pytest

from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition
from barnabas.transactions.metadata import Transaction
from barnabas.transactions.states import State
from barnabas.transactions.views import Filters, filters_of, merged
from barnabas.wire.messages.describe_transactions import TopicData, TransactionState
from barnabas.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def test_a_transaction_is_described(story: Any) -> None:
    story.init()
    story.add((4000, 0), TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("a", 0))
    assert story.run(story.machine.describe("tx")) == TransactionState(
        transactional_id="tx",
        transaction_state="Ongoing",
        transaction_timeout_ms=60_000,
        transaction_start_time_ms=1_000_001,
        producer_id=4000,
        producer_epoch=0,
        topics=[TopicData(topic="a", partitions=[0, 2]), TopicData(topic="b", partitions=[1])],
    )


@pytest.mark.parametrize(
    ("transactional_id", "code"),
    [("", ErrorCode.INVALID_REQUEST), ("none", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)],
)
def test_what_cannot_be_described(story: Any, transactional_id: str, code: ErrorCode) -> None:
    described = story.run(story.machine.describe(transactional_id))
    assert (described.transactional_id, described.error_code) == (transactional_id, code)


@pytest.mark.parametrize(
    ("filters", "listed"),
    [
        ({}, ["copy-1", "copy-2", "load"]),
        ({"state_filters": ["Ongoing"]}, ["copy-2"]),
        ({"state_filters": ["Ongoing", "Empty"]}, ["copy-1", "copy-2"]),
        ({"state_filters": ["Nonsense"]}, []),
        ({"producer_id_filters": [1, 3]}, ["copy-1", "load"]),
        ({"producer_id_filters": [3], "state_filters": ["Ongoing"]}, []),
        ({"duration_filter": 0}, ["copy-1", "copy-2", "load"]),
        ({"duration_filter": 99}, ["copy-1", "copy-2", "load"]),
        ({"duration_filter": 100}, ["copy-1", "load"]),
        ({"transactional_id_pattern": "copy-.*"}, ["copy-1", "copy-2"]),
        ({"transactional_id_pattern": "copy"}, []),
        ({"transactional_id_pattern": ""}, ["copy-1", "copy-2", "load"]),
        ({"transactional_id_pattern": None}, ["copy-1", "copy-2", "load"]),
    ],
)
def test_filters(story: Any, filters: dict[str, Any], listed: list[str]) -> None:
    story.now_ms = 1_000
    story.put(Transaction(1, 60_000, 1, 5), "copy-1")
    story.put(Transaction(2, 60_000, 1, 5, State.ONGOING, start_ms=900), "copy-2")
    story.put(Transaction(3, 60_000, 1, 5, State.COMPLETE_ABORT, start_ms=100), "load")
    listing = story.run(story.machine.list_transactions(read(**filters), story.now_ms))
    assert [state.transactional_id for state in listing] == listed


def read(**filters: Any) -> Filters:
    return run_generator(filters_of(ListTransactionsRequest(**filters)))


def run_generator(generator: Generator[None, None, Filters]) -> Filters:
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return cast(Filters, end.value)


def test_a_pattern_that_cannot_be_read() -> None:
    with pytest.raises(KafkaError) as refused:
        read(transactional_id_pattern="(")
    assert refused.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_the_listings_of_all_partitions_are_one_answer(new_story: Any) -> None:
    filters = read(state_filters=["Empty", "Nonsense", "Nonsense"])
    listings = []
    for name in ("a", "b"):
        story = new_story()
        story.put(Transaction(1, 60_000, 1, 5), name)
        listings.append(story.machine.list_transactions(filters, 0).reply)
    whole = merged(listings, filters)
    assert [state.transactional_id for state in whole.transaction_states] == ["a", "b"]
    assert whole.unknown_state_filters == ["Nonsense"]
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert merged([*listings, code], filters) == ListTransactionsResponse(error_code=code)
