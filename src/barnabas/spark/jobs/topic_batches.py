"""The batches of topics, fetched by tasks as brokers store them, including markers and aborted records."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from barnabas.ids import TopicPartition
from barnabas.records.batch import crc_is_valid, iter_headers
from barnabas.spark.brokers import Brokers
from barnabas.spark.jobs.batch_rows import BatchRows, Stretch
from barnabas.spark.jobs.clients import admin_of, cluster_of, compacted_topics
from barnabas.spark.planning import Range, split
from barnabas.spark.settings import Topics

FETCH_BYTES = 8 << 20
FETCH_SECONDS = 120.0
EVERYTHING = (1 << 63) - 1


class TopicPiece(NamedTuple):
    """The range that one task fetches; `is_first`: it is the first of its partition."""

    stretch: Stretch
    start: int
    end: int
    is_first: bool


class TopicWalk:
    """Spark calls it in a task with the numbers of the pieces to check."""

    def __init__(self, client: Mapping[str, str], pieces: Iterable[TopicPiece]) -> None:
        self._client = dict(client)
        self._pieces = tuple(pieces)

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        brokers = cluster_of(self._client)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _walked(brokers, self._pieces[number])


def pieces_of(client: Mapping[str, str], topics: Topics, tasks_min: int | None) -> list[TopicPiece]:
    """Everything in the topics now, as pieces for tasks."""
    brokers = cluster_of(client)
    partitions = brokers.partitions(topics)
    starts = brokers.starts(partitions)
    ends = brokers.ends(partitions, read_committed=False)
    with admin_of(client) as admin:
        cleaned = compacted_topics(admin, {partition.topic for partition in partitions})
    ranges = [Range(partition, starts[partition], ends[partition]) for partition in sorted(partitions)]
    return [
        TopicPiece(
            Stretch(
                "",
                *each.partition,
                each.start,
                starts[each.partition],
                EVERYTHING if each.partition.topic in cleaned else 0,
            ),
            each.start,
            each.end,
            each.start == starts[each.partition],
        )
        for each in [*split(ranges, None, tasks_min), *(each for each in ranges if each.size == 0)]
    ]


def _walked(brokers: Brokers, piece: TopicPiece) -> Iterator[Any]:
    rows = BatchRows(piece.stretch)
    where, offset = TopicPartition(piece.stretch.topic, piece.stretch.partition), piece.start
    while offset < piece.end:
        fetched = brokers.fetch(
            where, offset, FETCH_BYTES, read_committed=False, seconds=FETCH_SECONDS
        ).result()
        for position, header in iter_headers(fetched.records):
            data = fetched.records[position : position + header.size]
            offset = max(offset, header.next_offset)
            # A batch that is in two pieces belongs to the first.
            is_ours = header.base_offset < piece.end and (piece.is_first or header.base_offset >= piece.start)
            if not is_ours:
                continue
            if crc_is_valid(data, 0, header.size):
                rows.add(header.base_offset, data, header)
            else:
                rows.fault(
                    "crc", header.base_offset, header.base_offset, "the batch does not match its checksum"
                )
        yield from rows.finished(all_of_them=False)
    yield from rows.finished(all_of_them=True)
