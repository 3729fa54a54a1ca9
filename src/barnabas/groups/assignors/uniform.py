"""The uniform assignor: all members get the same number of partitions, and keep what they have if possible.

When all members subscribe to the same topics, their shares differ by one partition at most, and no more
partitions move than necessary. When subscriptions differ, partitions are moved one at a time from a member
with more to a subscriber with fewer, until no such move makes the two more even."""

import heapq
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from barnabas.groups.assignors.spec import Assignment, MemberSpec, PartitionCounts, in_order
from barnabas.ids import Uuid


class _Partition(NamedTuple):
    topic: Uuid
    number: int


_Shares: TypeAlias = dict[str, set[_Partition]]


def assign_uniformly(members: Mapping[str, MemberSpec], counts: PartitionCounts) -> dict[str, Assignment]:
    ordered = in_order(members)
    topics = {member_id: members[member_id].topic_ids.intersection(counts) for member_id in ordered}
    shares = _kept(members, ordered, topics, counts)
    if len(set(topics.values())) <= 1:
        _level(shares, _missing(shares, topics, counts))
    else:
        subscribers = _subscribers(topics)
        _deal(shares, _missing(shares, topics, counts), subscribers)
        _even_out(shares, subscribers)
    return {member_id: _by_topic(share) for member_id, share in shares.items()}


def _kept(
    members: Mapping[str, MemberSpec],
    ordered: list[str],
    topics: Mapping[str, frozenset[Uuid]],
    counts: PartitionCounts,
) -> _Shares:
    """What members keep: each partition goes to one member, in the members' order."""
    shares: _Shares = {}
    taken: set[_Partition] = set()
    for member_id in ordered:
        share = {
            _Partition(topic, number)
            for topic, numbers in members[member_id].assignment.items()
            if topic in topics[member_id]
            for number in numbers
            if number < counts[topic]
        }
        shares[member_id] = share - taken
        taken |= share
    return shares


def _missing(
    shares: _Shares, topics: Mapping[str, frozenset[Uuid]], counts: PartitionCounts
) -> list[_Partition]:
    """Partitions of subscribed topics that no member has, in order."""
    taken: set[_Partition] = set().union(*shares.values())
    subscribed = sorted(frozenset[Uuid]().union(*topics.values()))
    every = [_Partition(topic, number) for topic in subscribed for number in range(counts[topic])]
    return [partition for partition in every if partition not in taken]


def _level(shares: _Shares, missing: list[_Partition]) -> None:
    """All members subscribe to the same topics: cut shares that are too large, fill those that are too
    small."""
    if not shares:
        return
    total = sum(map(len, shares.values())) + len(missing)
    quota, longer = divmod(total, len(shares))
    for share in shares.values():
        size = quota
        if longer and len(share) > quota:
            # A member that already has more keeps one more, so that fewer partitions move.
            longer -= 1
            size += 1
        excess = sorted(share)[size:]
        share.difference_update(excess)
        missing.extend(excess)
    missing.sort()
    _fill(shares, missing, quota)


def _fill(shares: _Shares, missing: list[_Partition], quota: int) -> None:
    """Give each member one partition at a time, so that the partitions of a topic spread over the members."""
    rest = iter(missing)
    short = [share for share in shares.values() if len(share) < quota]
    while short:
        for share in short:
            share.add(next(rest))
        short = [share for share in short if len(share) < quota]
    level = [share for share in shares.values() if len(share) == quota]
    # The partitions that are left are fewer than the members with exactly the quota.
    for share, partition in zip(level, rest, strict=False):
        share.add(partition)


def _subscribers(topics: Mapping[str, frozenset[Uuid]]) -> dict[Uuid, list[str]]:
    """Subscribers by topic. Topics with few subscribers come first, because they have the least choice."""
    subscribers: dict[Uuid, list[str]] = {}
    for member_id, subscribed in topics.items():
        for topic in subscribed:
            subscribers.setdefault(topic, []).append(member_id)
    return dict(sorted(subscribers.items(), key=lambda item: (len(item[1]), item[0])))


def _deal(shares: _Shares, missing: list[_Partition], subscribers: Mapping[Uuid, list[str]]) -> None:
    """Give each partition to the subscriber that has the fewest."""
    by_topic: dict[Uuid, list[_Partition]] = {}
    for partition in missing:
        by_topic.setdefault(partition.topic, []).append(partition)
    for topic, readers in subscribers.items():
        heap = [(len(shares[member_id]), order, member_id) for order, member_id in enumerate(readers)]
        heapq.heapify(heap)
        for partition in by_topic.get(topic, ()):
            size, order, member_id = heap[0]
            shares[member_id].add(partition)
            heapq.heapreplace(heap, (size + 1, order, member_id))


def _even_out(shares: _Shares, subscribers: Mapping[Uuid, list[str]]) -> None:
    """Move partitions from members that have more to members that have fewer, until the shares are even.

    Every move makes the sum of the squared sizes smaller, so this ends."""
    moved = True
    while moved:
        moved = False
        for topic, readers in subscribers.items():
            while _even_out_once(shares, topic, readers):
                moved = True


def _even_out_once(shares: _Shares, topic: Uuid, readers: list[str]) -> bool:
    fewest = min(readers, key=lambda member_id: len(shares[member_id]))
    for member_id in sorted(readers, key=lambda member_id: -len(shares[member_id])):
        if len(shares[member_id]) - len(shares[fewest]) < 2:
            return False
        movable = [partition for partition in shares[member_id] if partition.topic == topic]
        if movable:
            partition = max(movable)
            shares[member_id].remove(partition)
            shares[fewest].add(partition)
            return True
    return False


def _by_topic(share: set[_Partition]) -> Assignment:
    partitions: dict[Uuid, set[int]] = {}
    for topic, number in share:
        partitions.setdefault(topic, set()).add(number)
    return {topic: frozenset(numbers) for topic, numbers in partitions.items()}
