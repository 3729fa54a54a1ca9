"""What a pipeline is: the same dataclasses whether it was written as YAML or in Python. Touches no Spark.

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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

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
    """How late an event may come, by the time in a column."""

    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Source:
    """Topics that are read, and how a record becomes a row. `schema` is Spark's, as in a CREATE TABLE."""

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
    """A DataFrame made of earlier ones: by SQL, or by a function `f(spark, **frames) -> DataFrame`.

    `inputs` are the frames the function gets; SQL finds them by their names in the text."""

    name: str
    sql: str | None = None
    python: str | Callable[..., Any] | None = None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """What must be true of a row, as SQL, and what becomes of a row of which it is not."""

    name: str
    check: str
    action: str = "quarantine"


@dataclass(frozen=True, slots=True)
class TopicSink:
    """Rows into a topic: `key` is a column; the value is all columns as JSON, or the one named `value`."""

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
    """Rows into a table. An upsert replaces rows of the same key; a row whose column `_deleted` is true
    deletes them. Of several rows of one key in a batch the last by `order_by` wins."""

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


Sink = TopicSink | TableSink


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`trigger` is a time between batches, or available-now: take what is there, then end."""

    name: str
    bootstrap: str
    checkpoint: str
    sources: Mapping[str, Source]
    sinks: tuple[Sink, ...]
    steps: tuple[Step, ...] = ()
    quality: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    dead_letters: str | None = None
    trigger: str = "5s"
    client: Mapping[str, str] = field(default_factory=dict)

    def transactional_id_of(self, query: str) -> str:
        """Of a query that writes into a topic; the marks of its batches are kept in a group of this name,
        which must not be the one that its reading is committed under."""
        return f"{self.name}-{query}-writer"

    def group_of(self, query: str) -> str:
        """The consumer group under which a query's progress is committed, for tools that show lag."""
        return f"{self.name}-{query}"
