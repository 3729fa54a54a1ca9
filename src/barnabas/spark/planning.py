"""How much a batch reads and how it is split into tasks: pure functions on offsets.

The rules are those of Spark's Kafka connector: a limit is shared in proportion to what each partition has to
read, and a range is split into equal parts, first by maxRecordsPerPartition and then by minPartitions. Our
own is maxPartitions: a task may read several ranges."""

import heapq
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.ids import TopicPartition
from barnabas.spark.offsets import Offsets


class Range(NamedTuple):
    """Offsets of one partition: `start` is read, `end` is not."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return max(0, self.end - self.start)


def capped(begin: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], most: int) -> Offsets:
    """The ends of a batch of at most `most` offsets, but at least one for each partition that has any."""
    backlog = {partition: max(0, end[partition] - begin.get(partition, 0)) for partition in end}
    total = sum(backlog.values())
    if total <= most:
        return dict(end)
    capped_ends = {}
    for partition, until in end.items():
        start = begin.get(partition, 0)
        share = backlog[partition] * most // total
        # As in Spark's Kafka connector: a small partition beside a large one must not wait for ever.
        step = max(share, 1) if backlog[partition] else 0
        capped_ends[partition] = until if until < start else min(start + step, until)
    return capped_ends


def capped_by_bytes(
    begin: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    bytes_per_offset: Mapping[TopicPartition, float],
    most: int,
) -> Offsets:
    """The ends of a batch of about `most` bytes, shared in proportion to the bytes that each partition has to
    read."""
    backlog = {
        partition: max(0, end[partition] - begin.get(partition, 0)) * bytes_per_offset.get(partition, 0.0)
        for partition in end
    }
    total = sum(backlog.values())
    if total <= most:
        return dict(end)
    capped_ends = {}
    for partition, until in end.items():
        start = begin.get(partition, 0)
        if until <= start:
            capped_ends[partition] = until
            continue
        per_offset = bytes_per_offset.get(partition, 0.0)
        share = most * backlog[partition] / total
        step = until - start if per_offset <= 0 else max(1, int(share / per_offset))
        capped_ends[partition] = min(start + step, until)
    return capped_ends


def split(ranges: Iterable[Range], records_max: int | None, partitions_min: int | None) -> list[Range]:
    """The ranges of the tasks; ranges without offsets are left out."""
    parts = [each for each in ranges if each.size > 0]
    if records_max is not None:
        parts = [piece for each in parts for piece in _divide(each, -(-each.size // records_max))]
    if partitions_min is None or len(parts) >= partitions_min:
        return parts
    total = sum(each.size for each in parts)
    whole = {each for each in parts if _share(each.size, total, partitions_min) == 1}
    # Small ranges are not split, and do not count when the large ones are split.
    rest = total - sum(each.size for each in whole)
    pieces_min = max(partitions_min - len(whole), 1)
    return [
        piece
        for each in parts
        for piece in ([each] if each in whole else _divide(each, _share(each.size, rest, pieces_min)))
    ]


def packed(ranges: Iterable[Range], tasks_max: int | None) -> list[list[Range]]:
    """The ranges of each task: about as many offsets for each, in the order of partitions and offsets."""
    parts = sorted(ranges)
    if tasks_max is None or len(parts) <= tasks_max:
        return [[each] for each in parts]
    tasks: list[list[Range]] = [[] for _ in range(tasks_max)]
    # The largest first, each to the task that has the least.
    least = [(0, number) for number in range(tasks_max)]
    for each in sorted(parts, key=lambda part: -part.size):
        offsets, number = least[0]
        tasks[number].append(each)
        heapq.heapreplace(least, (offsets + each.size, number))
    return [sorted(task) for task in tasks]


def _share(size: int, total: int, parts: int) -> int:
    return max(round(size / total * parts), 1)


def _divide(whole: Range, parts: int) -> list[Range]:
    pieces = []
    start = whole.start
    for part in range(parts):
        size = (whole.end - start) // (parts - part)
        pieces.append(Range(whole.partition, start, start + size))
        start += size
    return [piece for piece in pieces if piece.size > 0]
