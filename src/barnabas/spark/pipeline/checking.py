"""Checks of a pipeline's file: names, references and missing fields, without Spark or brokers."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from barnabas.spark.option_kinds import DURATION
from barnabas.spark.pipeline import definition as words
from barnabas.spark.pipeline.definition import Pipeline, Sink, Source, Step, TableSink, TopicSink
from barnabas.spark.pipeline.option_checks import sink_problems, source_problems
from barnabas.spark.pipeline.other_checks import (
    batch_sink_problems,
    cluster_problems,
    function_problems,
    origin_problems,
)
from barnabas.spark.pipeline.problems import Problem, meant
from barnabas.spark.pipeline.schemas import schema_problems

Lines = Mapping[tuple[str, str], int]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_START = re.compile(r"earliest|latest|group|now-\d+(ms|s|m|h|d)|-\d+|\{.*\}")


def check(pipeline: Pipeline, lines: Lines, directory: Path) -> list[Problem]:
    """All problems. Functions of steps are searched in `directory` first."""
    problems = [*_check_whole(pipeline)]
    for name, source in pipeline.sources.items():
        found = list(_check_source(name, source, pipeline)) or source_problems(name, source, pipeline)
        problems += [Problem(text, lines.get(("source", name))) for text in found]
    for name, origin in pipeline.tables.items():
        found = origin_problems(name, origin, pipeline)
        problems += [Problem(text, lines.get(("table", name))) for text in found]
    frames = [*pipeline.tables, *pipeline.sources]
    for step in pipeline.steps:
        line = lines.get(("step", step.name))
        problems += [Problem(text, line) for text in _check_step(step, frames, directory)]
        frames.append(step.name)
    problems += _check_quality(pipeline, frames, lines)
    seen: set[str] = set()
    for number, sink in enumerate(pipeline.sinks):
        line = lines.get(("sink", str(number)))
        found = list(_check_sink(sink, frames, seen, pipeline, directory)) or sink_problems(sink, pipeline)
        problems += [Problem(text, line) for text in found]
        seen.add(sink.name)
    return problems


def _check_whole(pipeline: Pipeline) -> Iterator[Problem]:
    if not pipeline.sources:
        yield Problem("The pipeline has no sources: name the topics that it reads.")
    if not pipeline.sinks:
        yield Problem("The pipeline has no sinks: name the topics or tables that it writes.")
    if pipeline.trigger != words.AVAILABLE_NOW and not _is_duration(pipeline.trigger):
        yield Problem(
            f"trigger is {pipeline.trigger!r}, but must be a duration such as 5s, or {words.AVAILABLE_NOW}."
        )
    for name in [*pipeline.sources, *pipeline.tables, *(step.name for step in pipeline.steps)]:
        if not _NAME.fullmatch(name):
            yield Problem(f"{name!r} cannot be a name in SQL: use letters, digits and _.")


def _is_duration(text: str) -> bool:
    try:
        DURATION.parse(text)
    except ValueError:
        return False
    return True


def _check_source(name: str, source: Source, pipeline: Pipeline) -> Iterator[str]:
    if bool(source.topics) == bool(source.pattern):
        yield f"Source {name} needs either topics or a pattern."
    if not _START.fullmatch(source.start):
        yield (
            f"start of {name} is {source.start!r}, but must be earliest, latest, group, now-<duration> such"
            " as now-10m, or -<records> such as -100."
        )
    yield from schema_problems(name, source)
    yield from cluster_problems(f"source {name}", source.cluster, pipeline)
    if source.bad_records == "quarantine" and pipeline.dead_letters is None:
        yield f"Source {name} quarantines bad records: name their topic in dead_letters."
    if source.decode in ("none", "text") and source.bad_records != "fail":
        yield f"Source {name} decodes nothing, so no record can be bad: remove bad_records."
    if source.dedupe and source.watermark is None:
        yield f"Source {name} drops duplicates and needs a watermark, so that old rows can be forgotten."


def _check_step(step: Step, frames: list[str], directory: Path) -> Iterator[str]:
    if step.name in frames:
        yield f"The name {step.name} is used twice: sources and steps need different names."
    if (step.sql is None and step.sql_file is None) == (step.python is None):
        yield f"Step {step.name} needs either sql or python."
    for name in step.inputs:
        if name not in frames:
            yield f"Step {step.name} reads {name!r}, which is not defined before it; {meant(name, frames)}"
    if isinstance(step.python, str):
        yield from function_problems(f"Step {step.name}", step.python, directory)


def _check_quality(pipeline: Pipeline, frames: list[str], lines: Lines) -> Iterator[Problem]:
    for name, rules in pipeline.quality.items():
        line = lines.get(("quality", name))
        if name not in frames:
            yield Problem(
                f"quality has rules for {name!r}, which is not a source or step; {meant(name, frames)}", line
            )
        if any(rule.action == "quarantine" for rule in rules) and pipeline.dead_letters is None:
            yield Problem(f"Rules of {name} quarantine rows: name their topic in dead_letters.", line)


def _check_sink(
    sink: Sink, frames: list[str], seen: set[str], pipeline: Pipeline, directory: Path
) -> Iterator[str]:
    if sink.source not in frames:
        yield f"A sink reads {sink.source!r}, which is not a source or step; {meant(sink.source, frames)}"
    if sink.name in seen:
        yield f"Two sinks write {sink.source} to the same topic or table: remove one."
    if isinstance(sink, TopicSink):
        if sink.mode not in (None, "append", "complete"):
            # Spark itself refuses update for sinks written in Python.
            yield f"mode of a sink to a topic must be append or complete, not {sink.mode!r}."
    elif isinstance(sink, TableSink):
        yield from _check_table(sink)
    yield from batch_sink_problems(sink, pipeline, directory)


def _check_table(sink: TableSink) -> Iterator[str]:
    if sink.mode == "upsert" and not sink.key:
        yield f"The table {sink.path} has mode upsert and needs a key: name the columns of the key."
    if sink.mode == "upsert" and sink.format == "parquet":
        yield f"The table {sink.path} is plain Parquet, which does not allow upsert: choose delta or iceberg."
    if sink.mode == "append" and sink.key:
        yield f"The table {sink.path} has mode append, which needs no key: remove key, or set mode upsert."
