"""Requests are taken apart as they are handled, and long ones are cut into portions."""

from typing import Any

from barnabas.broker.portions import (
    PARTITIONS_PER_PORTION,
    copied,
    drained,
    drained_items,
    last_of_each,
    topics_in_portions,
)
from barnabas.broker.turns import Work, in_turns
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)


def topic(name: str, *indexes: int) -> DeleteRecordsTopic:
    return DeleteRecordsTopic(
        name=name, partitions=[DeleteRecordsPartition(partition_index=index) for index in indexes]
    )


def done(work: Work[Any]) -> Any:
    return in_turns(work)


def test_items_are_taken_out_in_order() -> None:
    items, mapping = [1, 2, 3], {"b": 1, "a": 2}
    assert list(drained(items)) == [1, 2, 3]
    assert list(drained_items(mapping)) == [("b", 1), ("a", 2)]
    assert items == []
    assert mapping == {}


def test_the_last_of_repeated_partitions_counts(long_turns: None) -> None:
    topics = [topic("a", 1, 2), topic("b", 1), topic("a", 2)]
    last = topics[2].partitions[0]
    partitions = done(last_of_each(topics, "name", "partition_index"))
    assert {name: list(by_index) for name, by_index in partitions.items()} == {"a": [1, 2], "b": [1]}
    assert partitions["a"][2] is last
    assert topics == []


def test_portions_have_all_partitions_in_order() -> None:
    counts = {"a": 10, "b": 2 * PARTITIONS_PER_PORTION, "c": 1}
    portions = list(topics_in_portions([topic(name, *range(n)) for name, n in counts.items()], "partitions"))
    sizes = [sum(len(each.partitions) for each in portion) for portion in portions]
    assert sizes == [PARTITIONS_PER_PORTION, PARTITIONS_PER_PORTION, 11]
    seen = [(each.name, part.partition_index) for p in portions for each in p for part in each.partitions]
    assert seen == [(name, index) for name, n in counts.items() for index in range(n)]


def test_no_topics_are_one_empty_portion() -> None:
    assert list(topics_in_portions([], "partitions")) == [[]]


def test_a_copy_has_structs_and_lists_of_its_own() -> None:
    request = DeleteRecordsRequest(topics=[topic("a", 1, 2)], timeout_ms=7)
    copy = copied(request)
    assert copy == request
    copy.topics[0].partitions.clear()
    assert request == DeleteRecordsRequest(topics=[topic("a", 1, 2)], timeout_ms=7)
