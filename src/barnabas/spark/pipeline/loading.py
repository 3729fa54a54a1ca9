"""Loads a pipeline from its file: YAML, or a Python module that defines `pipeline`. Touches no Spark.

All problems are reported at once, with their lines, before anything is started."""

import importlib.util
import sys
from pathlib import Path
from typing import NamedTuple

import yaml

from barnabas.spark.pipeline import definition as words
from barnabas.spark.pipeline.checking import Lines, check
from barnabas.spark.pipeline.definition import (
    Cluster,
    DatabaseSink,
    FunctionSink,
    Pipeline,
    Rule,
    Sink,
    Source,
    Step,
    TableSink,
    TopicSink,
    Watermark,
)
from barnabas.spark.pipeline.nodes import Document, Fields
from barnabas.spark.pipeline.problems import PipelineError, Problem
from barnabas.spark.pipeline.text_files import with_files
from barnabas.spark.tables import origin as origins
from barnabas.spark.tables.origin import TableOrigin

PIPELINE = (
    "name",
    "bootstrap",
    "checkpoint",
    "trigger",
    "dead_letters",
    "sources",
    "tables",
    "steps",
    "quality",
    "sinks",
    "client",
    "clusters",
)
CLUSTER = ("bootstrap", "client")
SOURCE = (
    "topic",
    "topics",
    "pattern",
    "start",
    "decode",
    "schema",
    "schema_file",
    "message",
    "envelope",
    "cluster",
    "registry",
    "bad_records",
    "watermark",
    "dedupe",
    "options",
)
STEP = ("name", "sql", "sql_file", "python", "from")
RULE = ("name", "check", "action")
SINK = (
    "from",
    "topic",
    "table",
    "python",
    "database",
    "key",
    "value",
    "delivery",
    "transactional_id",
    "mode",
    "options",
    "cluster",
)
DATABASE = ("url", "table", "mode", "key", "order_by")
ORIGIN = ("path", "name", "catalog", "format", "url", "table", "query", "schema", "refresh")
TABLE = ("path", "name", "catalog", "format", "mode", "key", "partition_by", "order_by", "evolve")


class Loaded(NamedTuple):
    """A checked pipeline, and the lines of its parts in the file, for later checks."""

    pipeline: Pipeline
    lines: Lines


def load(path: Path) -> Pipeline:
    """The checked pipeline; PipelineError has all problems."""
    return load_with_lines(path).pipeline


def load_with_lines(path: Path) -> Loaded:
    lines: Lines
    if path.suffix == ".py":
        pipeline, lines = _from_module(path), {}
        problems: list[Problem] = []
    else:
        reading = _Reading(Document())
        pipeline = reading.pipeline(_compose(path))
        lines, problems = reading.lines, reading.document.problems
    pipeline, missing = with_files(pipeline, lines, path.parent)
    problems = problems + missing + check(pipeline, lines, path.parent)
    if problems:
        raise PipelineError(str(path), problems)
    return Loaded(pipeline, lines)


def _compose(path: Path) -> yaml.Node:
    try:
        node: yaml.Node | None = yaml.compose(path.read_text(), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        sentence = f"This is not valid YAML: {error.problem or error.context}."
        raise PipelineError(str(path), [Problem(sentence, mark.line + 1 if mark else None)]) from error
    if node is None:
        raise PipelineError(str(path), [Problem("The file is empty; it needs name, sources and sinks.")])
    return node


def _from_module(path: Path) -> Pipeline:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.exists():
        raise PipelineError(str(path), [Problem("There is no such file.")])
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise PipelineError(str(path), [Problem(f"The module cannot be imported: {error!r}.")]) from error
    pipeline = getattr(module, "pipeline", None)
    if not isinstance(pipeline, Pipeline):
        sentence = "The module must define `pipeline`, a barnabas.spark.pipeline.definition.Pipeline."
        raise PipelineError(str(path), [Problem(sentence)])
    return pipeline


class _Reading:
    """Reads the nodes, and remembers the lines of sources, steps, rules and sinks for later checks."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.lines: dict[tuple[str, str], int] = {}

    def _at(self, kind: str, name: str, node: yaml.Node) -> None:
        self.lines[kind, name] = node.start_mark.line + 1

    def pipeline(self, node: yaml.Node) -> Pipeline:
        fields = Fields(self.document, node, "the pipeline", PIPELINE)
        sources = {name: self._source(name, item) for name, item in fields.items("sources")}
        return Pipeline(
            name=fields.text("name", required=True),
            bootstrap=fields.text("bootstrap", "localhost:9092"),
            checkpoint=fields.text("checkpoint", required=True),
            sources=sources,
            sinks=tuple(self._sink(number, item) for number, item in enumerate(fields.elements("sinks"))),
            steps=tuple(self._step(item) for item in fields.elements("steps")),
            quality={name: self._rules(name, item) for name, item in fields.items("quality")},
            dead_letters=fields.maybe("dead_letters"),
            trigger=fields.text("trigger", "5s"),
            client=fields.settings("client"),
            tables={name: self._origin(name, item) for name, item in fields.items("tables")},
            clusters={name: self._cluster(name, item) for name, item in fields.items("clusters")},
        )

    def _cluster(self, name: str, node: yaml.Node) -> Cluster:
        fields = Fields(self.document, node, f"cluster {name}", CLUSTER)
        return Cluster(fields.text("bootstrap", required=True), fields.settings("client"))

    def _origin(self, name: str, node: yaml.Node) -> TableOrigin:
        self._at("table", name, node)
        fields = Fields(self.document, node, f"table {name}", ORIGIN)
        return TableOrigin(
            path=self._path(fields),
            format=fields.choice("format", origins.FORMATS, "iceberg" if fields.has("catalog") else "delta"),
            url=fields.text("url"),
            table=fields.text("table"),
            query=fields.text("query"),
            schema=fields.maybe("schema"),
            refresh=fields.choice("refresh", origins.REFRESHES, origins.BATCH),
            catalog=tuple(fields.settings("catalog").items()),
        )

    def _path(self, fields: Fields) -> str:
        """The path of a table, or its name in a catalog."""
        if fields.has("name") != fields.has("catalog"):
            self.document.wrong(fields.node, f"{fields.what} needs both name and catalog, or neither.")
        if fields.has("name") and fields.has("path"):
            self.document.wrong(fields.node, f"{fields.what} has a name in a catalog: remove path.")
        return fields.text("name" if fields.has("name") else "path")

    def _source(self, name: str, node: yaml.Node) -> Source:
        self._at("source", name, node)
        fields = Fields(self.document, node, f"source {name}", SOURCE)
        return Source(
            topics=fields.texts("topic") + fields.texts("topics"),
            pattern=fields.maybe("pattern"),
            start=fields.text("start", "earliest"),
            decode=fields.choice("decode", words.DECODINGS, "none"),
            schema=fields.maybe("schema"),
            registry=fields.maybe("registry"),
            bad_records=fields.choice("bad_records", words.BAD_RECORDS, "fail"),
            watermark=self._watermark(name, fields),
            dedupe=fields.texts("dedupe"),
            options=fields.settings("options"),
            schema_file=fields.maybe("schema_file"),
            message=fields.maybe("message"),
            envelope=fields.choice("envelope", words.ENVELOPES, "none"),
            cluster=fields.maybe("cluster"),
        )

    def _watermark(self, source: str, fields: Fields) -> Watermark | None:
        if not fields.has("watermark"):
            return None
        inner = Fields(
            self.document, fields.node_of("watermark"), f"watermark of {source}", ("column", "delay")
        )
        return Watermark(inner.text("column", required=True), inner.text("delay", required=True))

    def _step(self, node: yaml.Node) -> Step:
        fields = Fields(self.document, node, "a step", STEP)
        name = fields.text("name", required=True)
        self._at("step", name, node)
        self._at("sql", name, fields.node_of("sql"))
        return Step(
            name,
            fields.maybe("sql"),
            fields.maybe("python"),
            fields.texts("from"),
            sql_file=fields.maybe("sql_file"),
        )

    def _rules(self, name: str, node: yaml.Node) -> tuple[Rule, ...]:
        self._at("quality", name, node)
        if not isinstance(node, yaml.SequenceNode):
            self.document.wrong(node, f"quality of {name} must be a list of rules.")
            return ()
        for number, item in enumerate(node.value):
            self._at("rule", f"{name}.{number}", item)
        return tuple(self._rule(name, item) for item in node.value)

    def _rule(self, step: str, node: yaml.Node) -> Rule:
        fields = Fields(self.document, node, f"a rule of {step}", RULE)
        rule = fields.text("check", required=True)
        return Rule(fields.text("name", rule), rule, fields.choice("action", words.ACTIONS, "quarantine"))

    def _sink(self, number: int, node: yaml.Node) -> Sink:
        self._at("sink", str(number), node)
        fields = Fields(self.document, node, "a sink", SINK)
        if sum(map(fields.has, ("topic", "table", "python", "database"))) != 1:
            self.document.wrong(node, "A sink needs either a topic, a table, a database or python.")
        source = fields.text("from", required=True)
        if fields.has("table"):
            return self._table(source, fields.node_of("table"))
        if fields.has("database"):
            return self._database(source, fields.node_of("database"))
        if fields.has("python"):
            mode = fields.choice("mode", words.OUTPUT_MODES, "append")
            return FunctionSink(source, fields.text("python"), mode)
        return TopicSink(
            source,
            fields.text("topic"),
            key=fields.maybe("key"),
            value=fields.choice("value", words.VALUES, "json"),
            delivery=fields.choice("delivery", words.DELIVERIES, "exactly-once"),
            transactional_id=fields.maybe("transactional_id"),
            mode=fields.maybe("mode"),
            options=fields.settings("options"),
            cluster=fields.maybe("cluster"),
        )

    def _database(self, source: str, node: yaml.Node) -> DatabaseSink:
        fields = Fields(self.document, node, "a database", DATABASE)
        return DatabaseSink(
            source,
            fields.text("url", required=True),
            fields.text("table", required=True),
            mode=fields.choice("mode", words.TABLE_MODES, "append"),
            key=fields.texts("key"),
            order_by=fields.maybe("order_by"),
        )

    def _table(self, source: str, node: yaml.Node) -> TableSink:
        fields = Fields(self.document, node, "a table", TABLE)
        if not fields.has("name"):
            fields.text("path", required=True)
        return TableSink(
            source,
            self._path(fields),
            format=fields.choice(
                "format", words.TABLE_FORMATS, "iceberg" if fields.has("catalog") else "delta"
            ),
            mode=fields.choice("mode", words.TABLE_MODES, "append"),
            key=fields.texts("key"),
            partition_by=fields.texts("partition_by"),
            order_by=fields.maybe("order_by"),
            evolve=fields.flag("evolve", True),
            catalog=tuple(fields.settings("catalog").items()),
        )
