"""Committed offsets of groups, translated from the source of a mirror to its target.

A group that has read all that was copied stands at the end of the copy. For others Spark counts the records
that they have not read yet, and finds the record of the copy with as many from it on: a copy has the source's
committed records in their order. A group that is ahead of the mirror is put at the end of the copy.
Compaction takes records from each side at its own time, so that in compacted topics nothing can be counted:
there a group is put where both sides met before it. Groups may thus read records twice, and miss none."""

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
# What a copy has beside its records: a marker for each transaction, and what was aborted.
SPARE_OFFSETS = 64


class Translated(NamedTuple):
    """`target` is None where it was not committed; `told` says why."""

    group: str
    partition: TopicPartition
    source: int
    target: int | None
    told: str = ""


class _Left(NamedTuple):
    """A group's place, and how many records it has left before the meeting."""

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
    """Commit at the target what the groups have committed at the source; never backwards, and not for groups
    that have members there."""
    (source, source_admin), (target, target_admin) = clusters
    places = [
        _Left(group, history[partition][-1], found.offset)
        for group in groups
        for partition, found in sorted(source_admin.list_consumer_group_offsets(group).items())
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
        outcome
        for group in groups
        for outcome in _commit(
            target_admin,
            group,
            [(each, offsets[group, each.meeting.partition]) for each in places if each.group == group],
        )
    ]


def met_before(meetings: list[Meeting], source: int, start: int) -> int:
    """The last place of the copy before which there is nothing that comes after `source`."""
    return max((each.target for each in meetings if each.source <= source), default=start)


def _count(spark: "SparkSession", client: Mapping[str, str], places: list[_Left]) -> list[_Left]:
    """The places with how many committed records are left to them."""
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
    wanted = spark.createDataFrame(rows, "number int, topic string, partition int, since bigint")
    found = (
        _offsets_between(spark, client, begin, end)
        .join(wanted.hint("broadcast"), ["topic", "partition"])
        .where("offset >= since")
        .groupBy("number")
        .count()
        .collect()
    )
    counts = {row[0]: row[1] for row in found}
    return [each._replace(remaining=counts.get(number, 0)) for number, each in enumerate(places)]


def _find(
    spark: "SparkSession", client: Mapping[str, str], places: list[_Left], starts: Offsets
) -> dict[tuple[str, TopicPartition], int]:
    """The offset of the copy from which on there are as many records before the meeting."""
    found = {
        (each.group, each.meeting.partition): each.meeting.target for each in places if each.remaining == 0
    }
    left = [each for each in places if each.remaining]
    # Most copies have little beside their records; where that is not enough, the whole copy is read.
    for spare in (SPARE_OFFSETS, None):
        left = [each for each in left if (each.group, each.meeting.partition) not in found]
        if left:
            found |= _found_in_tail(spark, client, left, _tails(left, starts, spare))
    for each in left:
        found.setdefault((each.group, each.meeting.partition), starts[each.meeting.copy])
    return found


def _tails(places: list[_Left], starts: Offsets, spare: int | None) -> Offsets:
    """From where on each copy is read."""
    tails: Offsets = {}
    for each in places:
        copy = each.meeting.copy
        begin = starts[copy] if spare is None else each.meeting.target - 2 * each.remaining - spare
        tails[copy] = max(starts[copy], min(tails.get(copy, begin), begin))
    return tails


def _found_in_tail(
    spark: "SparkSession", client: Mapping[str, str], places: list[_Left], begin: Offsets
) -> dict[tuple[str, TopicPartition], int]:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    end = {each.meeting.copy: each.meeting.target for each in places}
    from_the_end = Window.partitionBy("topic", "partition").orderBy(f.desc("offset"))
    rows = [(number, *each.meeting.copy, each.remaining) for number, each in enumerate(places)]
    wanted = spark.createDataFrame(rows, "number int, topic string, partition int, left bigint")
    found = (
        _offsets_between(spark, client, begin, end)
        .withColumn("rank", f.row_number().over(from_the_end))
        .join(wanted.hint("broadcast"), ["topic", "partition"])
        .where("rank = left")
        .select("number", "offset")
        .collect()
    )
    return {(places[row[0]].group, places[row[0]].meeting.partition): row[1] for row in found}


def _offsets_between(
    spark: "SparkSession", client: Mapping[str, str], begin: Offsets, end: Offsets
) -> "DataFrame":
    """The committed records of the partitions, without what is in them."""
    options = source_options(client) | {
        "assign": assigned(begin),
        "startingOffsets": as_text(begin),
        "endingOffsets": as_text(end),
        "isolation.level": "read_committed",
    }
    schema = "topic string, partition int, offset bigint"
    return spark.read.format("barnabas").schema(schema).options(**options).load()


def _commit(admin: Admin, group: str, places: list[tuple[_Left, int]]) -> list[Translated]:
    known = {each: found.offset for each, found in admin.list_consumer_group_offsets(group).items()}
    ahead = {
        each.meeting.copy: offset for each, offset in places if offset > known.get(each.meeting.copy, -1)
    }
    told = ""
    try:
        if ahead:
            admin.alter_consumer_group_offsets(group, ahead)
    except KafkaError as error:
        told = error.message
    return [
        Translated(group, each.meeting.partition, each.source, None if told else offset, told)
        if each.meeting.copy in ahead
        else Translated(
            group, each.meeting.partition, each.source, known[each.meeting.copy], "is there already"
        )
        for each, offset in places
    ]
