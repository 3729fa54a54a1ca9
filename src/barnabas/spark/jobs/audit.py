"""Audit of topics or log directories: what is missing, repeated, damaged or out of order.

report = audit(spark, TopicLog({"bootstrap.servers": "localhost:9092"}, Topics(names=("orders",))))
report.faults, report.partitions, report.findings"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from barnabas.spark.jobs.batch_checks import FINDING, LOG, findings, summaries, with_neighbours
from barnabas.spark.jobs.batch_rows import SCHEMA
from barnabas.spark.jobs.clients import assigned, source_options
from barnabas.spark.jobs.record_checks import disorder, repeats
from barnabas.spark.jobs.segment_records import SCHEMA as RECORDS
from barnabas.spark.jobs.segment_records import SegmentRecords
from barnabas.spark.jobs.segments import Segment, SegmentWalk, segments_of
from barnabas.spark.jobs.topic_batches import TopicPiece, TopicWalk, pieces_of
from barnabas.spark.settings import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = 5


class Finding(NamedTuple):
    """`offset`: where it is; `amount`: how many records or offsets are affected; `alike`: how many findings
    of this kind the partition has. A finding with `is_wrong` False is information, not a fault."""

    place: str
    topic: str
    partition: int
    check: str
    offset: int | None
    amount: int
    detail: str
    is_wrong: bool
    alike: int


class PartitionSummary(NamedTuple):
    """Each offset from `first` to `last` is a record, a transaction marker, compacted, or missing."""

    place: str
    topic: str
    partition: int
    first: int | None = None
    last: int | None = None
    batches: int = 0
    bytes: int = 0
    records: int = 0
    markers: int = 0
    compacted: int = 0
    missing: int = 0
    repeated: int = 0
    backwards: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an audit: all partitions, and examples of what is wrong."""

    partitions: list[PartitionSummary]
    findings: list[Finding]

    @property
    def faults(self) -> int:
        """How many faults there are, including those that are not among the examples."""
        kinds = {(each[:4], each.alike) for each in self.findings if each.is_wrong}
        return sum(alike for _, alike in kinds)


@dataclass(frozen=True, slots=True)
class Checks:
    """Checks of single records: `repeats` finds records with the same key and value; `sequence_field`
    ($.json.path or header:NAME) is a number that must rise for each key."""

    repeats: bool = False
    sequence_field: str | None = None
    examples: int = EXAMPLES


class TopicLog:
    """Topics of a cluster, as they are now. `client` are settings of a client, such as bootstrap.servers."""

    def __init__(self, client: Mapping[str, str], topics: Topics, tasks_min: int | None = None) -> None:
        self._client = dict(client)
        self._pieces: list[TopicPiece] = pieces_of(client, topics, tasks_min)

    @property
    def partitions(self) -> set[tuple[str, str, int]]:
        return {piece.stretch[:3] for piece in self._pieces}

    def batch_rows(self, spark: "SparkSession") -> DataFrame:
        return _each(spark, TopicWalk(self._client, self._pieces), len(self._pieces), SCHEMA)

    def records(self, spark: "SparkSession") -> DataFrame:
        """Without aborted records: what was sent again after an abort is not a repeat."""
        options = source_options(self._client) | {
            "assign": assigned(piece.stretch[1:3] for piece in self._pieces),
            "includeHeaders": "true",
            "isolation.level": "read_committed",
        }
        return spark.read.format("barnabas").options(**options).load().selectExpr("'' AS place", "*")


class DirectoryLog:
    """Log directories, read without a broker."""

    def __init__(self, directories: list[Path], topics: tuple[str, ...] = ()) -> None:
        self._segments: list[Segment] = segments_of(directories, topics)

    @property
    def partitions(self) -> set[tuple[str, str, int]]:
        return {segment.stretch[:3] for segment in self._segments}

    def batch_rows(self, spark: "SparkSession") -> DataFrame:
        return _each(spark, SegmentWalk(self._segments), len(self._segments), SCHEMA)

    def records(self, spark: "SparkSession") -> DataFrame:
        return _each(spark, SegmentRecords(self._segments), len(self._segments), RECORDS)


def audit(spark: "SparkSession", log: TopicLog | DirectoryLog, checks: Checks | None = None) -> Report:
    """Check every batch of a log: its checksum, its records, and whether it follows the batch before it."""
    checks = checks or Checks()
    rows = log.batch_rows(spark).persist()
    try:
        batches = with_neighbours(rows)
        by_partition = {tuple(row[:3]): row for row in summaries(batches).collect()}
        faults = findings(rows, batches)
        if checks.repeats:
            faults = faults.unionByName(repeats(log.records(spark)))
        if checks.sequence_field is not None:
            faults = faults.unionByName(disorder(log.records(spark), checks.sequence_field))
        examples = _examples(faults, checks.examples)
    finally:
        rows.unpersist()
    partitions = [
        PartitionSummary(*by_partition[key]) if key in by_partition else PartitionSummary(*key)
        for key in sorted(log.partitions)
    ]
    return Report(partitions, examples)


def _examples(faults: DataFrame, most: int) -> list[Finding]:
    """The first few findings of each kind in a partition, with the number of all."""
    alike = Window.partitionBy(*LOG, "check")
    numbered = faults.withColumn("rank", f.row_number().over(alike.orderBy("offset"))).withColumn(
        "alike", f.count(f.lit(1)).over(alike)
    )
    rows = numbered.where(f.col("rank") <= most).select(*FINDING, "alike").collect()
    return sorted(
        (Finding(*row) for row in rows), key=lambda each: (not each.is_wrong, each[:4], each[4] or 0)
    )


def _each(spark: "SparkSession", walk: Any, count: int, schema: str) -> DataFrame:
    """One task for each piece."""
    return spark.range(0, count, 1, max(count, 1)).mapInArrow(walk, schema)
