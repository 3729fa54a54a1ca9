"""Copies topics of one cluster to another, exactly once, in rounds.

A round is a streaming query that reads everything there is and ends: its checkpoint stores how far it came,
and its transaction has a marker. Between rounds nothing is written to the copies. Then missing topics are
created, the corresponding offsets of both sides are stored, and groups are translated.

Only the mirror may write to the copies: offsets are translated by counting their records."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.ids import TopicPartition
from barnabas.spark.jobs.clients import JobError, admin_of, cluster_of, sink_options, source_options
from barnabas.spark.jobs.mirrored_topics import Pair, check_apart, ensure_topics, pairs_of
from barnabas.spark.jobs.offset_map import (
    Meeting,
    added,
    ensure_map,
    map_topic,
    read_meetings,
    write_meetings,
)
from barnabas.spark.jobs.translation import Translated, translate_groups
from barnabas.spark.offsets import Offsets, offsets_from_json
from barnabas.spark.queries import STARTS_MAX, reports_of, rows_of, was_late
from barnabas.spark.settings import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ALIAS = "source"
SAME_NAME = "{topic}"


@dataclass(frozen=True, slots=True)
class Mirror:
    """What is copied: `topics` of the cluster `source` to the cluster `target` (settings of clients).

    `alias` is the name of the source at the target: in the topic of offsets and in the transactional id.
    `rename` is the name of copies, with `{topic}` for the name of the topic. `groups` are the groups whose
    offsets are translated."""

    source: Mapping[str, str] = field(repr=False)
    target: Mapping[str, str] = field(repr=False)
    topics: Topics
    checkpoint: str
    alias: str = ALIAS
    rename: str = SAME_NAME
    groups: tuple[str, ...] = ()
    # Options of the data source: where a new query begins, and the limits of a batch.
    reading: Mapping[str, str] = field(default_factory=dict)


class Round(NamedTuple):
    """The result of a round. `rows` were copied; `made` are the topics that were created."""

    rows: int
    made: list[str]
    meetings: list[Meeting]
    groups: list[Translated]


def mirror_once(spark: "SparkSession", mirror: Mirror) -> Round:
    """Copy everything there is now."""
    pairs = pairs_of(mirror.source, mirror.topics, mirror.rename)
    if not pairs:
        raise JobError(
            f"There is no topic that matches {mirror.topics.pattern!r} at"
            f" {mirror.source['bootstrap.servers']}: check the pattern."
        )
    with admin_of(mirror.source) as source, admin_of(mirror.target) as target:
        check_apart(source, target, pairs)
        ensure_map(target, mirror.alias)
        made = ensure_topics(source, target, pairs)
        rows = _copy(spark, mirror)
        meetings = _meet(spark, mirror, pairs)
        history = read_meetings(mirror.target, mirror.alias)
        write_meetings(mirror.target, mirror.alias, added(history, meetings))
        clusters = (mirror.source, source), (mirror.target, target)
        groups = translate_groups(spark, clusters, history, mirror.groups) if mirror.groups else []
    return Round(rows, made, meetings, groups)


def _copy(spark: "SparkSession", mirror: Mirror) -> int:
    """Run the query to its end; returns how many rows were copied."""
    from pyspark.errors import StreamingQueryException

    frame = _renamed(_read(spark, mirror), mirror.rename)
    rows = 0
    for attempt in range(1, STARTS_MAX + 1):
        query = _start(frame, mirror)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if not was_late(error) or attempt == STARTS_MAX:
                raise
        finally:
            query.stop()
            rows += sum(map(rows_of, reports_of(query)))
        if query.exception() is None:
            break
    return rows


def _start(frame: "DataFrame", mirror: Mirror) -> "StreamingQuery":
    return (
        frame.writeStream.format("barnabas")
        .queryName(f"mirror {mirror.alias}")
        .options(**sink_options(mirror.target))
        .option("delivery", "exactly-once")
        .option("transactional.id", f"mirror-{mirror.alias}")
        .option("markerTopic", map_topic(mirror.alias))
        .option("includeHeaders", "true")
        .option("includeTimestamp", "true")
        .option("checkpointLocation", mirror.checkpoint)
        .trigger(availableNow=True)
        .start()
    )


def _read(spark: "SparkSession", mirror: Mirror) -> "DataFrame":
    subscription = (
        {"subscribePattern": mirror.topics.pattern}
        if mirror.topics.pattern
        else {"subscribe": ",".join(mirror.topics.names)}
    )
    options = {
        "startingOffsets": "earliest",
        **mirror.reading,
        **source_options(mirror.source),
        **subscription,
        "includeHeaders": "true",
        "isolation.level": "read_committed",
    }
    return spark.readStream.format("barnabas").options(**options).load()


def _renamed(frame: "DataFrame", template: str) -> "DataFrame":
    from pyspark.sql import functions as f

    before, _, after = template.partition(SAME_NAME)
    name = f.concat(f.lit(before), f.col("topic"), f.lit(after))
    return frame.withColumn("topic", name).select(
        "key", "value", "headers", "topic", "partition", "timestamp"
    )


def _meet(spark: "SparkSession", mirror: Mirror, pairs: list[Pair]) -> list[Meeting]:
    """Up to where the source was read, and where the copies end; nothing is written to them now."""
    done = _offsets_done(spark, mirror.checkpoint)
    names = {pair.source: pair.target for pair in pairs}
    copies = {
        partition: TopicPartition(names[partition.topic], partition.partition)
        for partition in done
        if partition.topic in names
    }
    ends = cluster_of(mirror.target).ends(copies.values(), read_committed=True)
    return [
        Meeting(partition, copy, done[partition], ends[copy]) for partition, copy in sorted(copies.items())
    ]


def _offsets_done(spark: "SparkSession", checkpoint: str) -> Offsets:
    """The end of the last batch in the checkpoint; the round is over, so this batch is finished."""
    newest = (
        spark.read.text(f"{checkpoint}/offsets", wholetext=True)
        .selectExpr("value", "cast(_metadata.file_name AS bigint) AS batch")
        .orderBy("batch", ascending=False)
        .first()
    )
    if newest is None:
        return {}
    # The lines are a version, Spark's notes about the batch, and the offset of the only source.
    lines: list[Any] = str(newest["value"]).splitlines()
    return offsets_from_json(json.loads(lines[2]))
