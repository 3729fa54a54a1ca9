"""Requests that name topics and partitions: each partition once, and cut into portions that are quickly done.

A call to a coordinator is decided as a whole and cannot be interrupted. So a request for many partitions
becomes several calls, one after the other, and their answers become one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.metadata.image import MetadataImage
from barnabas.wire.message import Message, values_of

# Committing this many offsets takes a few milliseconds.
PARTITIONS_PER_PORTION = 300


class _Topic(Protocol):
    name: str
    partitions: list[Any]


Topic = TypeVar("Topic", bound=_Topic)
Answered = TypeVar("Answered", bound=_Topic)
Key = TypeVar("Key")
Item = TypeVar("Item")
AnyMessage = TypeVar("AnyMessage", bound=Message)


def drained(items: list[Item]) -> Iterator[Item]:
    """The items in order, each taken out of the list: what is done with need not stay in memory."""
    items.reverse()
    while items:
        yield items.pop()


def drained_items(mapping: dict[Key, Item]) -> Iterator[tuple[Key, Item]]:
    """The items in order, each taken out of the dict."""
    for key in list(mapping):
        yield key, mapping.pop(key)


def last_of_each(topics: list[Any], name_field: str, index_field: str) -> Work[dict[str, dict[int, Any]]]:
    """Take the partitions out of the topics, by topic and index: the last of those that are repeated."""
    by_topic: dict[str, dict[int, Any]] = {}
    for topic in drained(topics):
        by_index = by_topic.setdefault(getattr(topic, name_field), {})
        for partition in topic.partitions:
            by_index[getattr(partition, index_field)] = partition
            yield
        yield
    return by_topic


def once_each(topics: list[Topic], key: Callable[[Topic], Hashable]) -> Work[list[Topic]]:
    """Take the topics out of the list, without repetitions: of a topic or partition that is repeated, the
    last one counts."""
    by_topic: dict[Hashable, Topic] = {}
    for topic in drained(topics):
        first = by_topic.setdefault(key(topic), topic)
        if first is not topic:
            first.partitions += topic.partitions
        yield
    for topic in by_topic.values():
        if len(topic.partitions) > 1:
            unique = {}
            for partition in topic.partitions:
                unique[partition.partition_index] = partition
                yield
            topic.partitions = list(unique.values())
        yield
    return list(by_topic.values())


def known_and_unknown(
    image: MetadataImage,
    topics: list[Topic],
    topic_answer: Callable[[str], Answered],
    partition_answer: Callable[[int, ErrorCode], Any],
) -> Work[tuple[list[Topic], list[Answered]]]:
    """Take the topics out of the list: those with their partitions that exist, and the answers for the
    partitions that do not."""
    known: list[Topic] = []
    unknown: list[Answered] = []
    for topic in drained(topics):
        existing = image.topic(topic.name)
        count = 0 if existing is None else len(existing.partitions)
        refused = topic_answer(topic.name)
        kept = []
        for part in topic.partitions:
            if 0 <= part.partition_index < count:
                kept.append(part)
            else:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                refused.partitions.append(partition_answer(part.partition_index, code))
            yield
        if kept:
            topic.partitions = kept
            known.append(topic)
        if refused.partitions:
            unknown.append(refused)
        yield
    return known, unknown


def topics_in_portions(topics: list[Any], partitions_name: str) -> Iterator[list[Any]]:
    """Take the topics out of the list, into lists with at most PARTITIONS_PER_PORTION partitions each: into
    one empty list if there are none."""
    portion: list[Any] = []
    room = PARTITIONS_PER_PORTION
    has_topics = bool(topics)
    for topic in drained(topics):
        partitions = getattr(topic, partitions_name)
        for part in in_portions(partitions, room):
            is_whole = len(part) == len(partitions)
            portion.append(topic if is_whole else changed(topic, **{partitions_name: part}))
            room -= len(part)
            if room <= 0:
                yield portion
                portion, room = [], PARTITIONS_PER_PORTION
    if portion or not has_topics:
        yield portion


def in_portions(items: Sequence[Item], first: int = PARTITIONS_PER_PORTION) -> Iterator[Sequence[Item]]:
    """Slices of the items; the first has at most `first`. One empty slice if there are no items."""
    yield items[:first]
    for start in range(first, len(items), PARTITIONS_PER_PORTION):
        yield items[start : start + PARTITIONS_PER_PORTION]


def joined(topics: Iterable[Topic], key: Callable[[Topic], Hashable]) -> Work[list[Topic]]:
    """Answers of several portions: each topic once, with the partitions of all."""
    by_topic: dict[Hashable, Topic] = {}
    for topic in topics:
        first = by_topic.setdefault(key(topic), topic)
        if first is not topic:
            first.partitions += topic.partitions
        yield
    return list(by_topic.values())


def changed(message: AnyMessage, **fields: Any) -> AnyMessage:
    """A copy of the message with other values in these fields."""
    return type(message)(**values_of(message) | fields)


def copied(value: Any) -> Any:
    """A copy of a message with structs and lists of its own, for a handler that takes its request apart."""
    if isinstance(value, list):
        return [copied(element) for element in value]
    if isinstance(value, Message):
        return type(value)(**{name: copied(field) for name, field in values_of(value).items()})
    return value
