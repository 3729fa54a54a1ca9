"""Filters on topic, partition, offset and timestamp as bounds of the offsets to read.

Other filters change nothing. Timestamps are only lower bounds, because records may be out of order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from barnabas.ids import TopicPartition
from barnabas.spark.offsets import Offsets

OFFSET_MAX = 2**63 - 1
_LOWER = (EqualTo, GreaterThan, GreaterThanOrEqual)
_UPPER = (EqualTo, LessThan, LessThanOrEqual)


@dataclass(frozen=True)
class Bounds:
    """Offsets from `first` to `last`, records not before `since_ms`, of these topics and partitions."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    first: int = 0
    last: int = OFFSET_MAX
    since_ms: int | None = None

    def narrow(
        self, begin: Offsets, end: Offsets, at_times: Callable[[Mapping[TopicPartition, int]], Offsets]
    ) -> tuple[Offsets, Offsets]:
        """What is left to read between two offsets."""
        left = [partition for partition in end if partition in begin and self._has(partition)]
        first = dict.fromkeys(left, self.first)
        if self.since_ms is not None:
            offsets = at_times(dict.fromkeys(left, self.since_ms))
            # A partition without a record at or after the time has nothing to read.
            first = {each: max(self.first, offsets.get(each, end[each])) for each in left}
        ends = {each: min(end[each], self.last + 1) for each in left}
        return {each: min(max(begin[each], first[each]), max(ends[each], begin[each])) for each in left}, ends

    def _has(self, partition: TopicPartition) -> bool:
        is_topic = self.topics is None or partition.topic in self.topics
        return is_topic and (self.partitions is None or partition.partition in self.partitions)


def bounds_of(filters: list[Filter]) -> Bounds:
    """The bounds that all the filters together set."""
    bounds = Bounds()
    for each in filters:
        name = ".".join(getattr(each, "attribute", ()))
        if name in ("topic", "partition") and isinstance(each, EqualTo | In):
            bounds = _one_of(bounds, name, each.value if isinstance(each, In) else (each.value,))
        elif name == "offset" and isinstance(getattr(each, "value", None), int):
            bounds = _between(bounds, each)
        elif name == "timestamp" and isinstance(each, _LOWER) and isinstance(each.value, datetime):
            since_ms = int(each.value.timestamp() * 1000)
            bounds = replace(bounds, since_ms=max(since_ms, bounds.since_ms or 0))
    return bounds


def _one_of(bounds: Bounds, name: str, values: tuple[Any, ...]) -> Bounds:
    allowed = frozenset(values)
    if name == "topic":
        return replace(bounds, topics=allowed if bounds.topics is None else bounds.topics & allowed)
    return replace(bounds, partitions=allowed if bounds.partitions is None else bounds.partitions & allowed)


def _between(bounds: Bounds, each: Filter) -> Bounds:
    if isinstance(each, _LOWER):
        first = each.value + (1 if isinstance(each, GreaterThan) else 0)
        bounds = replace(bounds, first=max(bounds.first, first))
    if isinstance(each, _UPPER):
        last = each.value - (1 if isinstance(each, LessThan) else 0)
        bounds = replace(bounds, last=min(bounds.last, last))
    return bounds
