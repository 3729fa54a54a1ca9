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

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.spark.tables.origin import TableOrigin
from barnabas.spark.tables.target import Settings, TableTarget

AVAILABLE_NOW = "available-now"
DECODED = ("json", "csv", "avro", "protobuf")
DECODINGS = (*DECODED, "text", "none")
ENVELOPES = ("debezium", "none")
BAD_RECORDS = ("fail", "null", "quarantine")
ACTIONS = ("quarantine", "drop", "fail")
VALUES = ("json", "text", "none")
DELIVERIES = ("exactly-once", "at-least-once")
TABLE_FORMATS = ("delta", "iceberg", "parquet")
TABLE_MODES = ("append", "upsert")
OUTPUT_MODES = ("append", "update", "complete")
_COLUMN = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Watermark:
    """How late a row may arrive, measured by the time in a column."""

    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """Brokers, and the settings of clients for them."""

    bootstrap: str
    # It may have passwords in it.
    client: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a client."""
        return {"bootstrap.servers": self.bootstrap, **self.client}


@dataclass(frozen=True, slots=True)
class Source:
    """Topics that are read, and how a record becomes a row. `schema` is written as in CREATE TABLE, for Avro
    in JSON. `schema_file` is a file that holds it, relative to the pipeline's file; for Protobuf the
    descriptors that protoc writes. With the envelope `debezium` the schema is that of the rows in the
    changes."""

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
    schema_file: str | None = None
    # The message of Protobuf values.
    message: str | None = None
    envelope: str = "none"
    # One of the pipeline's clusters, if it is not the pipeline's own.
    cluster: str | None = None

    def reads(self, topic: str) -> bool:
        """Whether the topic is one of this source."""
        return topic in self.topics if self.pattern is None else bool(re.fullmatch(self.pattern, topic))


@dataclass(frozen=True, slots=True)
class Step:
    """A DataFrame made from earlier ones, by SQL or by a function `f(spark, **frames) -> DataFrame`.

    `inputs` are the frames that the function gets; SQL uses frames by their names. `sql_file` is a file that
    holds the SQL, relative to the pipeline's file."""

    name: str
    sql: str | None = None
    python: str | Callable[..., Any] | None = None
    inputs: tuple[str, ...] = ()
    sql_file: str | None = None


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
    cluster: str | None = None

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
    # Settings of an Iceberg catalog, in which `path` is the name of the table. They may have passwords in
    # them.
    catalog: Settings = field(default=(), repr=False)

    @property
    def name(self) -> str:
        last = self.path.rstrip("/").rpartition("/")[2]
        return f"{self.source}-to-{last.replace('{', '').replace('}', '')}"

    @property
    def column(self) -> str | None:
        """The column whose values choose the table, if the path has one: ./orders/{country}."""
        found = _COLUMN.search(self.path)
        return None if found is None else found[1]

    def target_for(self, value: str | None, directory: Path) -> TableTarget:
        """The table for a value of the column."""
        return replace(self, path=_COLUMN.sub(lambda _: _file_name(value), self.path)).target(directory)

    def targets(self, directory: Path) -> list[TableTarget]:
        """The tables; of those that a column chooses, the ones in the local file system."""
        target = self.target(directory)
        if self.column is None:
            return [target]
        root, _, rest = target.path.partition("{")
        found = sorted(map(str, Path(root).glob("*" + rest.partition("}")[2])))
        return [replace(target, path=path) for path in found if Path(path).is_dir()]

    def target(self, directory: Path) -> TableTarget:
        """The table; a relative path begins at the directory of the pipeline's file."""
        return TableTarget(
            path=self.path if self.catalog else path_in(directory, self.path),
            format=self.format,
            mode=self.mode,
            key=self.key,
            partition_by=self.partition_by,
            order_by=self.order_by,
            evolve=self.evolve,
            catalog=self.catalog,
        )


@dataclass(frozen=True, slots=True)
class FunctionSink:
    """Calls a function with the rows of each batch and its number, as Spark's foreachBatch. A batch may be
    passed again after a failure, with the same number. `mode` is Spark's output mode."""

    source: str
    python: str | Callable[..., Any]
    mode: str = "append"

    @property
    def name(self) -> str:
        name = self.python if isinstance(self.python, str) else self.python.__name__
        return f"{self.source}-to-{name.rpartition(':')[2]}"


@dataclass(frozen=True, slots=True)
class DatabaseSink:
    """Writes rows to an existing table of a database, whose URL is one of SQLAlchemy. An upsert is as for
    TableSink."""

    source: str
    # It may have a password in it.
    url: str = field(repr=False)
    table: str
    mode: str = "append"
    key: tuple[str, ...] = ()
    order_by: str | None = None

    @property
    def name(self) -> str:
        return f"{self.source}-to-{self.table}"


Sink = TopicSink | TableSink | FunctionSink | DatabaseSink


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline: the names are those in the file of a pipeline.

    `trigger` is the time between batches, or available-now: process what is there, then end."""

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
    # Tables that steps may use.
    tables: Mapping[str, TableOrigin] = field(default_factory=dict)
    # Other clusters that sources and sinks may name.
    clusters: Mapping[str, Cluster] = field(default_factory=dict)

    def cluster(self, name: str | None) -> Cluster:
        """One of the clusters; None is the pipeline's own."""
        return Cluster(self.bootstrap, self.client) if name is None else self.clusters[name]

    def clusters_of_sources(self) -> list[Cluster]:
        """The clusters that are read, each once."""
        return [self.cluster(name) for name in dict.fromkeys(each.cluster for each in self.sources.values())]

    def cluster_of(self, topic: str, step: str | None) -> str | None:
        """The cluster of a topic that a source reads: of the source `step`, if it is one. None is the
        pipeline's own."""
        if step is not None and step in self.sources:
            return self.sources[step].cluster
        reading = [each for each in self.sources.values() if each.reads(topic)]
        return reading[0].cluster if reading else None

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


def _file_name(value: str | None) -> str:
    """A value as a part of a path, different for different values. Only letters, digits, - and _ stay as they
    are: some libraries decode names as URLs."""
    if not value:
        return "~" if value is None else "~~"
    return "".join(
        chr(byte) if byte < 128 and (chr(byte).isalnum() or chr(byte) in "-_") else f"~{byte:02X}"
        for byte in value.encode()
    )


def path_in(directory: Path, text: str) -> str:
    """A path in a pipeline's file, relative to its directory. A path with a scheme (s3://...) is not
    changed."""
    return text if "://" in text else str((directory / text).resolve())
