"""Translates committed offsets of groups from the source of a mirror to its target.

If a group has read everything that was copied, its offset is the end of the copy. For other groups Spark
counts the committed records that they have not read yet, and finds the offset in the copy with the same
number of records after it: a copy has the committed records of the source in the same order. If a group is
ahead of the mirror, its offset is the end of the copy.

Records of compacted topics cannot be counted, because compaction removes them at different times on both
sides. There a group gets the last corresponding offset before its own. So groups may read records twice, but
miss none."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas.client import Admin
from barnabas.errors import KafkaError
from barnabas.ids import TopicPartition
from barnabas.spark.jobs.clients import assigned, cluster_of, compacted_topics, source_options
from barnabas.spark.jobs.offset_map import History, Meeting
from barnabas.spark.offsets import Offsets, as_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Cluster = tuple[Mapping[str, str], Admin]
# Offsets of a copy that are not committed records: transaction markers and aborted records.
SPARE_OFFSETS = 64


class Translated(NamedTuple):
    """`target` is None if it was not committed; `reason` says why."""

    group: str
    partition: TopicPartition
    source: int
    target: int | None
    reason: str = ""


class _Left(NamedTuple):
    """The offset of a group, and how many records it has still to read before the meeting."""

    group: str
    meeting: Meeting
    source: int
    remaining: int = 0


def translate_groups(
    spark: "SparkSession",
    clusters: tuple[Cluster, Cluster],
    history: History,
    groups: tuple[str, ...],
) -> list[Translated]:
    """Commit the translated offsets of the groups at the target; never a lower offset than before, and not
    for groups that have members there."""
    (source, source_admin), (target, target_admin) = clusters
    places = [
        _Left(group, history[partition][-1], committed.offset)
        for group in groups
        for partition, committed in sorted(source_admin.list_consumer_group_offsets(group).items())
        if partition in history
    ]
    compacted = compacted_topics(source_admin, {each.meeting.partition.topic for each in places})
    behind = [each for each in places if each.source < each.meeting.source]
    countable = [each for each in behind if each.meeting.partition.topic not in compacted]
    starts = cluster_of(target).starts({each.meeting.copy for each in behind})
    offsets = {
        (each.group, each.meeting.partition): met_before(
            history[each.meeting.partition], each.source, starts.get(each.meeting.copy, 0)
        )
        for each in places
    }
    offsets |= _find(spark, target, _count(spark, source, countable), starts)
    return [
        translated
        for group in groups
        for translated in _commit(
            target_admin,
            group,
            [(each, offsets[group, each.meeting.partition]) for each in places if each.group == group],
        )
    ]


def met_before(meetings: list[Meeting], source: int, start: int) -> int:
    """The last known offset of the copy before which there are only records from before `source`."""
    return max((each.target for each in meetings if each.source <= source), default=start)


def _count(spark: "SparkSession", client: Mapping[str, str], places: list[_Left]) -> list[_Left]:
    """The places with the number of committed records that are still to be read."""
    if not places:
        return []
    starts = cluster_of(client).starts({each.meeting.partition for each in places})
    begin: Offsets = {}
    for each in places:
        where = each.meeting.partition
        begin[where] = max(min(begin.get(where, each.source), each.source), starts[where])
    end = {each.meeting.partition: each.meeting.source for each in places}
    begin = {where: min(offset, end[where]) for where, offset in begin.items()}
    rows = [(number, *each.meeting.partition, each.source) for number, each in enumerate(places)]
    table = spark.createDataFrame(rows, "number int, topic string, partition int, since bigint")
    counted = (
        _offsets_between(spark, client, begin, end)
        .join(table.hint("broadcast"), ["topic", "partition"])
        .where("offset >= since")
        .groupBy("number")
        .count()
        .collect()
    )
    counts = {row[0]: row[1] for row in counted}
    return [each._replace(remaining=counts.get(number, 0)) for number, each in enumerate(places)]


def _find(
    spark: "SparkSession", client: Mapping[str, str], places: list[_Left], starts: Offsets
) -> dict[tuple[str, TopicPartition], int]:
    """The offset of the copy that has `remaining` records between it and the meeting."""
    offsets = {
        (each.group, each.meeting.partition): each.meeting.target for each in places if each.remaining == 0
    }
    left = [each for each in places if each.remaining]
    # Most copies have few offsets that are not records. If there are more than expected, all of it is read.
    for spare in (SPARE_OFFSETS, None):
        left = [each for each in left if (each.group, each.meeting.partition) not in offsets]
        if left:
            offsets |= _find_in_tails(spark, client, left, _tails(left, starts, spare))
    for each in left:
        offsets.setdefault((each.group, each.meeting.partition), starts[each.meeting.copy])
    return offsets


def _tails(places: list[_Left], starts: Offsets, spare: int | None) -> Offsets:
    """The offset from which each copy is read."""
    tails: Offsets = {}
    for each in places:
        copy = each.meeting.copy
        begin = starts[copy] if spare is None else each.meeting.target - 2 * each.remaining - spare
        tails[copy] = max(starts[copy], min(tails.get(copy, begin), begin))
    return tails


def _find_in_tails(
    spark: "SparkSession", client: Mapping[str, str], places: list[_Left], begin: Offsets
) -> dict[tuple[str, TopicPartition], int]:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    end = {each.meeting.copy: each.meeting.target for each in places}
    from_the_end = Window.partitionBy("topic", "partition").orderBy(f.desc("offset"))
    rows = [(number, *each.meeting.copy, each.remaining) for number, each in enumerate(places)]
    table = spark.createDataFrame(rows, "number int, topic string, partition int, left bigint")
    matches = (
        _offsets_between(spark, client, begin, end)
        .withColumn("rank", f.row_number().over(from_the_end))
        .join(table.hint("broadcast"), ["topic", "partition"])
        .where("rank = left")
        .select("number", "offset")
        .collect()
    )
    return {(places[row[0]].group, places[row[0]].meeting.partition): row[1] for row in matches}


def _offsets_between(
    spark: "SparkSession", client: Mapping[str, str], begin: Offsets, end: Offsets
) -> "DataFrame":
    """The offsets of the committed records of the partitions."""
    options = source_options(client) | {
        "assign": assigned(begin),
        "startingOffsets": as_text(begin),
        "endingOffsets": as_text(end),
        "isolation.level": "read_committed",
    }
    schema = "topic string, partition int, offset bigint"
    return spark.read.format("barnabas").schema(schema).options(**options).load()


def _commit(admin: Admin, group: str, places: list[tuple[_Left, int]]) -> list[Translated]:
    known = {each: committed.offset for each, committed in admin.list_consumer_group_offsets(group).items()}
    ahead = {
        each.meeting.copy: offset for each, offset in places if offset > known.get(each.meeting.copy, -1)
    }
    reason = ""
    try:
        if ahead:
            admin.alter_consumer_group_offsets(group, ahead)
    except KafkaError as error:
        reason = error.message
    return [
        Translated(group, each.meeting.partition, each.source, None if reason else offset, reason)
        if each.meeting.copy in ahead
        else Translated(
            group, each.meeting.partition, each.source, known[each.meeting.copy], "was already committed"
        )
        for each, offset in places
    ]
