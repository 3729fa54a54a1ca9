"""Loads a pipeline from its file: YAML, or a Python module that defines `pipeline`. Touches no Spark.

All problems are reported at once, with their lines, before anything is started."""

import importlib.util
import sys
from pathlib import Path

import yaml

from barnabas.spark.pipeline import definition as words
from barnabas.spark.pipeline.checking import check
from barnabas.spark.pipeline.definition import (
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

PIPELINE = (
    "name",
    "bootstrap",
    "checkpoint",
    "trigger",
    "dead_letters",
    "sources",
    "steps",
    "quality",
    "sinks",
    "client",
)
SOURCE = (
    "topic",
    "topics",
    "pattern",
    "start",
    "decode",
    "schema",
    "registry",
    "bad_records",
    "watermark",
    "dedupe",
    "options",
)
STEP = ("name", "sql", "python", "from")
RULE = ("name", "check", "action")
SINK = ("from", "topic", "table", "key", "value", "delivery", "transactional_id", "mode", "options")
TABLE = ("path", "format", "mode", "key", "partition_by", "order_by", "evolve")


def load(path: Path) -> Pipeline:
    """The checked pipeline; PipelineError has all problems."""
    if path.suffix == ".py":
        pipeline, lines = _from_module(path), {}
        problems: list[Problem] = []
    else:
        reading = _Reading(Document())
        pipeline = reading.pipeline(_compose(path))
        lines, problems = reading.lines, reading.document.problems
    problems = problems + check(pipeline, lines, path.parent)
    if problems:
        raise PipelineError(str(path), problems)
    return pipeline


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
        )

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
        return Step(name, fields.maybe("sql"), fields.maybe("python"), fields.texts("from"))

    def _rules(self, name: str, node: yaml.Node) -> tuple[Rule, ...]:
        self._at("quality", name, node)
        if not isinstance(node, yaml.SequenceNode):
            self.document.wrong(node, f"quality of {name} must be a list of rules.")
            return ()
        return tuple(self._rule(name, item) for item in node.value)

    def _rule(self, step: str, node: yaml.Node) -> Rule:
        fields = Fields(self.document, node, f"a rule of {step}", RULE)
        rule = fields.text("check", required=True)
        return Rule(fields.text("name", rule), rule, fields.choice("action", words.ACTIONS, "quarantine"))

    def _sink(self, number: int, node: yaml.Node) -> Sink:
        self._at("sink", str(number), node)
        fields = Fields(self.document, node, "a sink", SINK)
        if fields.has("topic") == fields.has("table"):
            self.document.wrong(node, "A sink needs either a topic or a table.")
        source = fields.text("from", required=True)
        if fields.has("table"):
            return self._table(source, fields.node_of("table"))
        return TopicSink(
            source,
            fields.text("topic"),
            key=fields.maybe("key"),
            value=fields.choice("value", words.VALUES, "json"),
            delivery=fields.choice("delivery", words.DELIVERIES, "exactly-once"),
            transactional_id=fields.maybe("transactional_id"),
            mode=fields.maybe("mode"),
            options=fields.settings("options"),
        )

    def _table(self, source: str, node: yaml.Node) -> TableSink:
        fields = Fields(self.document, node, "a table", TABLE)
        return TableSink(
            source,
            fields.text("path", required=True),
            format=fields.choice("format", words.TABLE_FORMATS, "delta"),
            mode=fields.choice("mode", words.TABLE_MODES, "append"),
            key=fields.texts("key"),
            partition_by=fields.texts("partition_by"),
            order_by=fields.maybe("order_by"),
            evolve=fields.flag("evolve", True),
        )
