"""Offsets in checkpoints, and how the end of the first batch contains its beginning."""

import json

from barnabas.ids import TopicPartition
from barnabas.spark.offsets import (
    batch_end,
    batch_start,
    beginning,
    is_beginning,
    offsets_from_json,
    offsets_to_json,
)

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_the_text_is_the_stock_connectors_and_does_not_depend_on_order() -> None:
    assert json.dumps(offsets_to_json({ONE: 7, ZERO: 5})) == '{"orders": {"0": 5, "1": 7}}'
    assert offsets_from_json({"orders": {"0": 5, "1": 7}}) == {ZERO: 5, ONE: 7}


def test_the_end_of_the_first_batch_remembers_where_it_began() -> None:
    start = beginning({ZERO: 100})
    end = batch_end(start, {ZERO: 110})
    assert is_beginning(start)
    assert not is_beginning(end)
    later = beginning({ZERO: 150})
    assert batch_start(later, end) == {ZERO: 100}
    assert offsets_from_json(end) == {ZERO: 110}


def test_later_batches_begin_where_spark_says() -> None:
    first = batch_end(beginning({ZERO: 100}), {ZERO: 110})
    second = batch_end(first, {ZERO: 120})
    assert second == {"orders": {"0": 120}}
    assert batch_start(first, second) == {ZERO: 110}


def test_a_query_that_began_without_partitions_reads_all_of_those_that_come() -> None:
    end = batch_end(beginning({}), {ZERO: 9})
    assert batch_start(beginning({ZERO: 9}), end) == {}


def test_offsets_survive_json() -> None:
    end = batch_end(beginning({ZERO: 100}), {ZERO: 110})
    assert batch_start({}, json.loads(json.dumps(end))) == {ZERO: 100}
