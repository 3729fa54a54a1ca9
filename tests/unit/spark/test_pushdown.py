"""Filters as bounds of the offsets to read."""

from datetime import UTC, datetime

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from barnabas.ids import TopicPartition
from barnabas.spark.offsets import Offsets
from barnabas.spark.pushdown import Bounds, bounds_of

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
BEGIN, END = {A0: 0, A1: 10, B0: 0}, {A0: 100, A1: 50, B0: 20}


def narrowed(bounds: Bounds, times: Offsets | None = None) -> dict[TopicPartition, tuple[int, int]]:
    begin, end = bounds.narrow(BEGIN, END, lambda _: times or {})
    return {each: (begin[each], end[each]) for each in end if end[each] > begin[each]}


def test_offsets_bound_both_sides() -> None:
    assert narrowed(bounds_of([GreaterThanOrEqual(("offset",), 15), LessThan(("offset",), 40)])) == {
        A0: (15, 40),
        A1: (15, 40),
        B0: (15, 20),
    }
    assert narrowed(bounds_of([GreaterThan(("offset",), 98), LessThanOrEqual(("offset",), 99)])) == {
        A0: (99, 100)
    }
    assert narrowed(bounds_of([EqualTo(("offset",), 12)])) == {A0: (12, 13), A1: (12, 13), B0: (12, 13)}


def test_topics_and_partitions_are_chosen() -> None:
    assert narrowed(bounds_of([EqualTo(("topic",), "a"), In(("partition",), (0, 7))])) == {A0: (0, 100)}
    assert narrowed(bounds_of([EqualTo(("topic",), "a"), EqualTo(("topic",), "b")])) == {}


def test_a_time_bounds_from_below_and_leaves_out_what_is_older() -> None:
    when = datetime(2024, 1, 1, tzinfo=UTC)
    bounds = bounds_of([GreaterThanOrEqual(("timestamp",), when), LessThan(("timestamp",), when)])
    assert bounds.since_ms == 1_704_067_200_000
    assert narrowed(bounds, {A0: 30, A1: 5}) == {A0: (30, 100), A1: (10, 50)}


def test_what_is_not_understood_narrows_nothing() -> None:
    filters = [
        IsNotNull(("offset",)),
        Not(EqualTo(("offset",), 3)),
        StringStartsWith(("topic",), "b"),
        EqualTo(("value",), b"x"),
        GreaterThan(("offset", "x"), 3),
    ]
    assert bounds_of(filters) == Bounds()
