"""The topics that members of a consumer group subscribe to, by name or by regular expression. No I/O.

A regular expression is resolved to the names of existing topics once per group. The result is stored in a
record, so that every member sees the same topics."""

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.coordination.patterns import Pattern
from barnabas.errors import KafkaError
from barnabas.groups import record_schemas as schemas
from barnabas.groups.consumer.members import Member
from barnabas.groups.records import GroupRecord
from barnabas.groups.settings import TopicsView
from barnabas.ids import Uuid

logger = logging.getLogger(__name__)


class ResolvedRegex(NamedTuple):
    topics: frozenset[str]
    resolved_at_ms: int


def topics_of(member: Member, regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """The topics that a member subscribes to, whether they exist or not."""
    resolved = regexes.get(member.topic_regex) if member.topic_regex else None
    return member.topic_names if resolved is None else member.topic_names | resolved.topics


def topics_of_all(members: Iterable[Member], regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    return frozenset[str]().union(*(topics_of(member, regexes) for member in members))


def topic_ids(names: Iterable[str], topics: TopicsView) -> frozenset[Uuid]:
    ids = (topics.topic_id(name) for name in names)
    return frozenset(topic_id for topic_id in ids if topic_id is not None)


def regexes_of(members: Iterable[Member]) -> Counter[str]:
    """How many members subscribe to each regular expression."""
    return Counter(member.topic_regex for member in members if member.topic_regex)


def resolve(expressions: Iterable[str], topics: TopicsView, now_ms: int) -> dict[str, ResolvedRegex]:
    """The topics that each expression matches, if they can be told now. An invalid expression is left out, so
    that it keeps its topics: members cannot send one, but a Kafka broker may have accepted one before."""
    patterns: dict[str, Pattern] = {}
    for expression in expressions:
        try:
            patterns[expression] = Pattern(expression)
        except KafkaError as error:
            logger.warning("a subscription keeps its current topics: %s", error)
    visible = topics.names() if patterns else ()
    if visible is None:
        return {}
    names = list(visible)
    return {
        expression: ResolvedRegex(frozenset(name for name in names if pattern.matches(name)), now_ms)
        for expression, pattern in patterns.items()
    }


def metadata_hash(names: Iterable[str], topics: TopicsView) -> int:
    """A number that changes when one of these topics is created, deleted or gets partitions."""
    digest = hashlib.blake2b(digest_size=8)
    any_exists = False
    for name in sorted(name for name in names if topics.topic_id(name) is not None):
        topic_id, count = topics.topic_id(name), topics.partition_count(name)
        if topic_id is not None and count is not None:
            any_exists = True
            digest.update(topic_id + count.to_bytes(4, "big") + len(name).to_bytes(2, "big") + name.encode())
    return int.from_bytes(digest.digest(), "big", signed=True) if any_exists else 0


# ---- records


def regex_record(group_id: str, expression: str, resolved: ResolvedRegex | None) -> GroupRecord:
    """The record of a resolved expression; None removes it, because no member uses it any more."""
    key = schemas.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression)
    if resolved is None:
        return GroupRecord(key, None)
    value = schemas.ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), timestamp=resolved.resolved_at_ms
    )
    return GroupRecord(key, value)
