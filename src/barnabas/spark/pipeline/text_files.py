"""Schemas and SQL in files of their own, named relative to the pipeline's file and read when it is loaded."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from barnabas.spark.pipeline.definition import Pipeline, Source, Step
from barnabas.spark.pipeline.problems import Problem

Lines = Mapping[tuple[str, str], int]


def with_files(pipeline: Pipeline, lines: Lines, directory: Path) -> tuple[Pipeline, list[Problem]]:
    """The pipeline with the texts of its files, and the files that cannot be used."""
    problems: list[Problem] = []
    sources: dict[str, Source] = {}
    for name, source in pipeline.sources.items():
        sources[name] = source
        if source.schema_file is not None:
            try:
                sources[name] = replace(source, schema=_schema(source, directory))
            except _Unusable as error:
                sentence = f"schema_file of source {name} {error}"
                problems.append(Problem(sentence, lines.get(("source", name))))
    steps: list[Step] = []
    for step in pipeline.steps:
        steps.append(step)
        if step.sql_file is not None:
            try:
                steps[-1] = replace(step, sql=_sql(step, directory))
            except _Unusable as error:
                sentence = f"sql_file of step {step.name} {error}"
                problems.append(Problem(sentence, lines.get(("step", step.name))))
    return replace(pipeline, sources=sources, steps=tuple(steps)), problems


class _Unusable(Exception):
    """The end of a sentence that begins with the name of the field."""


def _schema(source: Source, directory: Path) -> str:
    if source.schema is not None:
        raise _Unusable("is given beside schema: remove one of them.")
    assert source.schema_file is not None
    if source.decode == "protobuf":
        # A set of descriptors is binary.
        return b64encode(_bytes(directory / source.schema_file)).decode()
    return _text(directory / source.schema_file)


def _sql(step: Step, directory: Path) -> str:
    if step.sql is not None:
        raise _Unusable("is given beside sql: remove one of them.")
    assert step.sql_file is not None
    # Spark takes one statement without its end.
    return _text(directory / step.sql_file).rstrip().removesuffix(";")


def _text(path: Path) -> str:
    data = _bytes(path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _Unusable(f"is {path}, whose line {line} is not UTF-8.") from error
    if not text.strip():
        raise _Unusable(f"is {path}, which is empty.")
    return text


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _Unusable(f"is {path}, which cannot be read: {error.strerror}.") from error
