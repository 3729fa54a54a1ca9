"""Writes a pipeline as a project for Spark Declarative Pipelines (`spark-pipelines run`), which uses only
PySpark and our data sources.

Sources and steps become temporary views, sinks become sinks with append flows. What such a project cannot do
is an error: upserts, databases and functions as sinks, and output modes other than append."""

import re
from collections.abc import Iterator
from pathlib import Path
from pprint import pformat

import yaml

from barnabas.spark.pipeline.definition import (
    DECODED,
    Pipeline,
    Rule,
    Sink,
    Source,
    Step,
    TableSink,
    TopicSink,
    path_in,
)
from barnabas.spark.pipeline.options import dead_letter_options, sink_options, source_options
from barnabas.spark.pipeline.schemas import columns_of

SPEC = "spark-pipeline.yml"
MODULE = "transformations/pipeline.py"
ORIGIN = "_topic string, _partition int, _offset bigint, _timestamp timestamp"
WHOLE_RECORD = f"{ORIGIN}, _key binary, _value binary, _headers array<struct<key: string, value: binary>>"
PLACE = ("_topic", "_partition", "_offset")
# The columns of the record that a row may have; they are not written to topics.
ORIGIN_COLUMNS = (*PLACE, "_timestamp")
OWN_COLUMNS = (*ORIGIN_COLUMNS, "_deleted")
_STAR = re.compile(r"(?:SELECT|DISTINCT|,)\s+(?:\w+\.)?\*", re.IGNORECASE)
HEAD = '''\
"""Written by `barnabas pipeline export` from {file}."""

import sys

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()
# Modules of steps are searched here.
sys.path.insert(0, {directory!r})


def header(name, column):
    return F.struct(F.lit(name).alias("key"), column.cast("string").cast("binary").alias("value"))


def letters(frame, value, step, origin):
    """Rows as dead letters, with the reason and, if they have it, the origin in headers."""
    named = {{
        "barnabas.error": F.col("_error"),
        "barnabas.pipeline": F.lit({pipeline!r}),
        "barnabas.step": F.lit(step),
        **{{f"barnabas.{{column[1:]}}": F.col(column) for column in origin}},
    }}
    headers = F.array(*[header(name, column) for name, column in named.items()])
    return frame.select(value.alias("value"), headers.alias("headers"))
'''


class ExportError(Exception):
    """The pipeline has parts that a project cannot have; the text names them."""


def export(pipeline: Pipeline, file: Path, target: Path) -> list[Path]:
    """Write the project; returns its files. ExportError if it is not possible."""
    problems = list(_problems(pipeline))
    if problems:
        raise ExportError("\n".join(problems))
    spec = {
        "name": pipeline.name,
        "storage": Path(path_in(file.parent, f"{pipeline.checkpoint}/spark-pipelines")).as_uri(),
        "libraries": [{"glob": {"include": "transformations/**"}}],
    }
    written = {
        SPEC: yaml.safe_dump(spec, sort_keys=False),
        MODULE: "\n\n".join(_parts(pipeline, file)) + "\n",
    }
    for name, text in written.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # The settings of clients may have passwords in them.
        path.touch(mode=0o600)
        path.write_text(text)
    return [target / name for name in written]


def _problems(pipeline: Pipeline) -> Iterator[str]:
    for sink in pipeline.sinks:
        if not isinstance(sink, TopicSink | TableSink):
            yield f"The sink {sink.name} is no topic or table, which a project cannot write: remove it."
        elif sink.mode not in (None, "append"):
            yield f"The sink {sink.name} has mode {sink.mode}, but flows of a project only append."
        elif isinstance(sink, TableSink) and sink.column is not None:
            yield f"The sink {sink.name} chooses tables by a column, which a project cannot do."
    for step in pipeline.steps:
        if step.python is not None and not isinstance(step.python, str):
            yield f"Step {step.name} is a function without a name: name it as module:function."


def _parts(pipeline: Pipeline, file: Path) -> Iterator[str]:
    directory = str(file.parent.resolve())
    yield HEAD.format(file=file.name, directory=directory, pipeline=pipeline.name)
    for name, origin in pipeline.tables.items():
        options = {**origin.as_options()}
        if origin.path and not origin.catalog:
            options["path"] = path_in(file.parent, origin.path)
        reader = f'spark.read.format("barnabas_table").options(**{_literal(options)})'
        schema = f".schema({origin.schema!r})" if origin.schema is not None else ""
        yield _view(name, [f"return {reader}{schema}.load()"])
    for name, source in pipeline.sources.items():
        yield from _source_parts(pipeline, name, source)
    streams = list(pipeline.sources)
    for step in pipeline.steps:
        yield from _step_parts(pipeline, step, streams)
        streams.append(step.name)
    for sink in pipeline.sinks:
        yield _sink_part(pipeline, sink, file.parent)


def _view(name: str, body: list[str]) -> str:
    lines = "\n".join(f"    {line}" if line else "" for line in body)
    return f"@dp.temporary_view\ndef {name}():\n{lines}\n"


def _literal(value: object) -> str:
    return pformat(value, width=88, sort_dicts=False).replace("\n", "\n        ")


def _source_parts(pipeline: Pipeline, name: str, source: Source) -> Iterator[str]:
    options = _options(pipeline, source)
    body = [f"frame = {_reader(source, options, ORIGIN)}"]
    if source.decode == "text":
        body.append(
            'frame = frame.withColumns({each: F.col(each).cast("string") for each in ("key", "value")})'
        )
    if source.decode in DECODED:
        if source.bad_records == "quarantine":
            body.append('frame = frame.filter("_error IS NULL")')
        body.append('frame = frame.drop("_error")')
    if source.watermark is not None:
        body.append(f"frame = frame.withWatermark({source.watermark.column!r}, {source.watermark.delay!r})")
    if source.dedupe:
        body.append(f"frame = frame.dropDuplicatesWithinWatermark({list(source.dedupe)!r})")
    yield from _checked(pipeline, name, body)
    if source.bad_records == "quarantine":
        query = f"undecodable_{name}"
        reading = [
            f"frame = {_reader(source, options, WHOLE_RECORD)}",
            f'return letters(frame.filter("_error IS NOT NULL"), F.col("_value"), {name!r}, {PLACE!r})',
        ]
        yield _flow(query, dead_letter_options(pipeline, query), reading)


def _checked(pipeline: Pipeline, name: str, body: list[str]) -> Iterator[str]:
    """The view of a frame and, if it has rules, one of its rows before them."""
    rules = pipeline.quality.get(name, ())
    if not rules:
        yield _view(name, [*body, "return frame"])
        return
    yield _view(f"{name}_unchecked", [*body, "return frame"])
    reading = f"frame = spark.readStream.table({f'{name}_unchecked'!r})"
    yield _view(name, [reading, *_passing(rules), "return frame"])
    quarantining = [rule for rule in rules if rule.action == "quarantine"]
    if quarantining:
        query = f"rejected_{name}"
        dropping = _passing(tuple(rule for rule in rules if rule.action == "drop"))
        yield _flow(
            query,
            dead_letter_options(pipeline, query),
            [reading, *dropping, *_rejected(name, quarantining, own_columns(pipeline)[name])],
        )


def _rejected(name: str, rules: list[Rule], origin: tuple[str, ...]) -> list[str]:
    broken = [
        f"    F.when(~F.coalesce(F.expr({rule.check!r}), F.lit(False)), F.lit({rule.name!r})),"
        for rule in rules
    ]
    has_place = set(PLACE) <= set(origin)
    return [
        f'frame = frame.withColumn("_json", {_json(origin)})',
        "reason = F.concat_ws(",
        '    ", ",',
        *broken,
        ")",
        """frame = frame.withColumn("_error", reason).filter("_error <> ''")""",
        f'return letters(frame, F.col("_json").cast("binary"), {name!r}, {PLACE if has_place else ()!r})',
    ]


def _json(own: tuple[str, ...]) -> str:
    """A row as JSON, without columns of the record. A flow must not ask for the columns of a frame."""
    others = f"* EXCEPT ({', '.join(own)})" if own else "*"
    return f'F.expr("to_json(struct({others}))")'


def own_columns(pipeline: Pipeline) -> dict[str, tuple[str, ...]]:
    """The columns of the record that each frame has, as far as its SQL shows."""
    own: dict[str, tuple[str, ...]] = dict.fromkeys(pipeline.tables, ())
    for name, source in pipeline.sources.items():
        deleted = OWN_COLUMNS if source.envelope != "none" else ORIGIN_COLUMNS
        own[name] = deleted if source.decode in DECODED else ()
    for step in pipeline.steps:
        words = set(re.findall(r"\w+", step.sql or ""))
        takes_all = step.sql is None or _STAR.search(step.sql) is not None
        used = step.inputs if step.sql is None else tuple(name for name in own if name in words)
        inherited = {column for name in used for column in own[name]} if takes_all else set()
        own[step.name] = tuple(column for column in OWN_COLUMNS if column in words | inherited)
    return own


def _options(pipeline: Pipeline, source: Source) -> dict[str, str]:
    """Without a group: several flows may read a view, and each would need its own."""
    options = source_options(pipeline, source, "")
    return {name: value for name, value in options.items() if value}


def _reader(source: Source, options: dict[str, str], record: str) -> str:
    reader = f'spark.readStream.format("barnabas").options(\n        **{_literal(options)}\n    )'
    if source.decode in DECODED:
        return f"{reader}.schema(\n        {columns_of(source, f'{record}, _error string')!r}\n    ).load()"
    return f"{reader}.load()"


def _passing(rules: tuple[Rule, ...]) -> Iterator[str]:
    for rule in rules:
        if rule.action == "fail":
            error = f"A row breaks the rule '{rule.name}': {rule.check}"
            yield (
                f"frame = frame.filter(F.when(F.expr({rule.check!r}), F.lit(True)).otherwise("
                f'F.raise_error(F.lit({error!r})).cast("boolean")))'
            )
        else:
            yield f"frame = frame.filter({rule.check!r})"


def _step_parts(pipeline: Pipeline, step: Step, streams: list[str]) -> Iterator[str]:
    if step.sql is not None:
        body = [f"frame = spark.sql({_streaming(step.sql, streams)!r})"]
    else:
        module, _, function = str(step.python).partition(":")
        inputs = ", ".join(f"{name}={_table(name, pipeline)}" for name in step.inputs)
        body = [f"from {module} import {function}", "", f"frame = {function}(spark, {inputs})"]
    yield from _checked(pipeline, step.name, body)


def _table(name: str, pipeline: Pipeline) -> str:
    return f"spark.{'read' if name in pipeline.tables else 'readStream'}.table({name!r})"


def _streaming(sql: str, streams: list[str]) -> str:
    """The SQL with STREAM(name) where a stream is read: without it, Spark reads the name as a table."""
    names = "|".join(map(re.escape, streams))
    return re.sub(rf"\b(FROM|JOIN)(\s+)({names})\b(?!\s*\()", r"\1\2STREAM(\3)", sql, flags=re.IGNORECASE)


def _sink_part(pipeline: Pipeline, sink: Sink, directory: Path) -> str:
    query = re.sub(r"\W", "_", sink.name)
    body = [f"frame = spark.readStream.table({sink.source!r})"]
    if isinstance(sink, TableSink):
        body.append("return frame")
        return _flow(query, sink.target(directory).as_options(), body, "barnabas_table")
    assert isinstance(sink, TopicSink)
    key = 'F.lit(None).cast("string")' if sink.key is None else f'F.col({sink.key!r}).cast("string")'
    if sink.value == "none":
        body.append("return frame")
    elif sink.value == "text":
        body.append(f'return frame.select({key}.alias("key"), F.col("value").cast("string").alias("value"))')
    else:
        value = _json(own_columns(pipeline)[sink.source])
        body.append(f'return frame.select({key}.alias("key"), {value}.alias("value"))')
    return _flow(query, sink_options(pipeline, sink), body)


def _flow(query: str, options: dict[str, str], body: list[str], format_: str = "barnabas") -> str:
    lines = "\n".join(f"    {line}" if line else "" for line in body)
    return (
        f'dp.create_sink("{query}", "{format_}", {_literal(options)})\n\n\n'
        f'@dp.append_flow(target="{query}")\ndef write_{query}():\n{lines}\n'
    )
