"""The parts of a pipeline, as dataclasses, for pipelines in YAML and in Python. Touches no Spark.

from barnabas.spark.pipeline.definition import Pipeline, Source, Step, TableSink

pipeline = Pipeline(
    name="orders",
    bootstrap="localhost:9092",
    checkpoint="./state/orders",
    sources={"orders": Source(topics=("orders",), decode="json", schema="order_id string, amount double")},
    steps=(Step("large", sql="SELECT * FROM orders WHERE amount > 100"),),
    sinks=(TableSink("large", path="./tables/large"),),
)
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.spark.tables.target import TableTarget

AVAILABLE_NOW = "available-now"
DECODINGS = ("json", "avro", "text", "none")
BAD_RECORDS = ("fail", "null", "quarantine")
ACTIONS = ("quarantine", "drop", "fail")
VALUES = ("json", "text", "none")
DELIVERIES = ("exactly-once", "at-least-once")
TABLE_FORMATS = ("delta", "iceberg", "parquet")
TABLE_MODES = ("append", "upsert")


@dataclass(frozen=True, slots=True)
class Watermark:
    """How late a row may arrive, measured by the time in a column."""

    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Source:
    """Topics that are read, and how a record becomes a row. `schema` is written as in CREATE TABLE."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    start: str = "earliest"
    decode: str = "none"
    schema: str | None = None
    registry: str | None = None
    bad_records: str = "fail"
    watermark: Watermark | None = None
    dedupe: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """A DataFrame made from earlier ones, by SQL or by a function `f(spark, **frames) -> DataFrame`.

    `inputs` are the frames that the function gets; SQL uses frames by their names."""

    name: str
    sql: str | None = None
    python: str | Callable[..., Any] | None = None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition for rows, as SQL, and what to do with a row that does not fulfil it."""

    name: str
    check: str
    action: str = "quarantine"


@dataclass(frozen=True, slots=True)
class TopicSink:
    """Writes rows to a topic. `key` is a column; the value is all columns as JSON, or the column `value`."""

    source: str
    topic: str
    key: str | None = None
    value: str = "json"
    delivery: str = "exactly-once"
    transactional_id: str | None = None
    mode: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.source}-to-{self.topic}"


@dataclass(frozen=True, slots=True)
class TableSink:
    """Writes rows to a table. An upsert replaces rows with the same key; a row whose column `_deleted` is
    true deletes them. If a batch has several rows with one key, the last one by `order_by` is used."""

    source: str
    path: str
    format: str = "delta"
    mode: str = "append"
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    order_by: str | None = None
    evolve: bool = True

    @property
    def name(self) -> str:
        return f"{self.source}-to-{self.path.rstrip('/').rpartition('/')[2]}"

    def target(self, directory: Path) -> TableTarget:
        """The table; a relative path begins at the directory of the pipeline's file."""
        return TableTarget(
            path=path_in(directory, self.path),
            format=self.format,
            mode=self.mode,
            key=self.key,
            partition_by=self.partition_by,
            order_by=self.order_by,
            evolve=self.evolve,
        )


Sink = TopicSink | TableSink


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`trigger` is the time between batches, or available-now: process what is there, then end."""

    name: str
    bootstrap: str
    checkpoint: str
    sources: Mapping[str, Source]
    sinks: tuple[Sink, ...]
    steps: tuple[Step, ...] = ()
    quality: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    dead_letters: str | None = None
    trigger: str = "5s"
    # It may have passwords in it.
    client: Mapping[str, str] = field(default_factory=dict, repr=False)

    def transactional_id_of(self, query: str) -> str:
        """The transactional id of a query that writes to a topic. The markers of its batches are stored in a
        group with this name, which must not be the group of group_of()."""
        return f"{self.name}-{query}-writer"

    def group_of(self, query: str) -> str:
        """The group for which a query commits its progress, for tools that show lag."""
        return f"{self.name}-{query}"


class Aside(NamedTuple):
    """A query that writes rows of `frame` to the dead letters: undecodable values, or rejected rows."""

    query: str
    is_undecodable: bool
    frame: str


def asides(pipeline: Pipeline) -> Iterator[Aside]:
    for name, source in pipeline.sources.items():
        if source.bad_records == "quarantine":
            yield Aside(f"undecodable-{name}", True, name)
    for name, rules in pipeline.quality.items():
        if any(rule.action == "quarantine" for rule in rules):
            yield Aside(f"rejected-{name}", False, name)


def query_names(pipeline: Pipeline) -> list[str]:
    """One query for each sink, and one for each frame whose bad rows are dead letters."""
    return [sink.name for sink in pipeline.sinks] + [aside.query for aside in asides(pipeline)]


def path_in(directory: Path, text: str) -> str:
    """A path in a pipeline's file, relative to its directory. A path with a scheme (s3://...) is not
    changed."""
    return text if "://" in text else str((directory / text).resolve())
