"""Checks of a pipeline that need more than its file: functions of steps (Python), and SQL, schemas and
columns (Spark). Nothing is read or written."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.spark.causes import PlaceInSql, cause_of, place_in_sql
from barnabas.spark.pipeline.checking import Lines
from barnabas.spark.pipeline.definition import FunctionSink, Pipeline
from barnabas.spark.pipeline.functions import Reference, load_function
from barnabas.spark.pipeline.grouping import member_mode
from barnabas.spark.pipeline.option_checks import column_problems
from barnabas.spark.pipeline.problems import Problem, meant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.spark.pipeline.frames import Frames

_MISSING_TABLE = re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\] The table or view `([^`.]+)` cannot be found")


def check_functions(pipeline: Pipeline, lines: Lines, directory: Path) -> list[Problem]:
    """Functions of steps and sinks that cannot be imported or called. Their modules are imported."""
    problems = [
        Problem(sentence, lines.get(("step", step.name)))
        for step in pipeline.steps
        if step.python is not None
        for sentence in _check_function(f"Step {step.name}", step.python, directory, ["spark"], step.inputs)
    ]
    for number, sink in enumerate(pipeline.sinks):
        if isinstance(sink, FunctionSink):
            found = _check_function(f"The sink {sink.name}", sink.python, directory, ["frame", "batch"], ())
            problems += [Problem(sentence, lines.get(("sink", str(number)))) for sentence in found]
    return problems


def _check_function(
    owner: str, reference: Reference, directory: Path, places: Sequence[str], names: Sequence[str]
) -> Iterator[str]:
    """`places` are the arguments that are passed by position, `names` those that are passed by name."""
    try:
        function = load_function(reference, directory, owner)
    except Exception as error:
        yield f"{owner}: its function {reference} cannot be imported: {cause_of(error)}"
        return
    # Some callables, such as those in C, have no signature.
    with suppress(ValueError):
        try:
            inspect.signature(function).bind(*places, **dict.fromkeys(names))
        except TypeError as error:
            given = ", ".join((*places, *(f"{name}=..." for name in names)))
            yield f"{owner} calls its function with ({given}), which it does not take: {error}."


def check_with_spark(spark: "SparkSession", pipeline: Pipeline, file: Path, lines: Lines) -> list[Problem]:
    """Problems that only Spark can find, each once: a step that uses a wrong one is not reported."""
    from barnabas.spark.pipeline.lineage import roots_of
    from barnabas.spark.pipeline.queries import Place

    place = Place(spark, pipeline, file.parent)
    checking = _Checking(place.frames("check"), pipeline, file, lines)
    written = [sink.source for sink in pipeline.sinks]
    problems: list[Problem] = []
    for name in [*pipeline.tables, *pipeline.sources, *(step.name for step in pipeline.steps)]:
        problems += checking.problems_of(name)
    return problems or checking.problems_of_modes(roots_of(pipeline, place.frames("plan"), written))


class _Checking:
    def __init__(self, frames: "Frames", pipeline: Pipeline, file: Path, lines: Lines) -> None:
        self._frames = frames
        self._pipeline = pipeline
        self._texts = file.read_text().splitlines()
        self._lines = lines
        self._steps = {step.name: step for step in pipeline.steps}
        self._directory = file.parent
        self._failures: set[str] = set()

    def problems_of(self, name: str) -> list[Problem]:
        """The problems of a source or step, of its rules and of the sinks that write it."""
        try:
            frame = self._frames.unchecked(name)
        except Exception as error:
            # The same error again: this step uses a wrong one.
            if self._is_new(error):
                sentence = f"{self._kind(name).capitalize()} {name}: {self._sentence(name, error)}"
                return [Problem(sentence, *self._place(name, error))]
            return []
        problems = []
        for number, rule in enumerate(self._pipeline.quality.get(name, ())):
            try:
                frame.filter(rule.check)
            except Exception as error:
                self._is_new(error)
                sentence = f"The rule {rule.name!r} of {name}: {cause_of(error)}"
                problems.append(Problem(sentence, self._lines.get(("rule", f"{name}.{number}"))))
        for number, sink in enumerate(self._pipeline.sinks):
            if sink.source == name:
                line = self._lines.get(("sink", str(number)))
                problems += [Problem(text, line) for text in column_problems(sink, tuple(frame.columns))]
        return problems

    def problems_of_modes(self, roots: Mapping[str, str]) -> list[Problem]:
        """Sinks that Spark refuses when their query starts, such as one that appends sums that may change."""
        problems = []
        for number, sink in enumerate(self._pipeline.sinks):
            mode = member_mode(self._pipeline, sink, roots[sink.source])
            try:
                check_mode(self._frames[sink.source], mode)
            except Exception as error:
                sentence = f"The sink {sink.name}: {cause_of(error)}"
                problems.append(Problem(sentence, self._lines.get(("sink", str(number)))))
        return problems

    def _sentence(self, name: str, error: BaseException) -> str:
        missing = _MISSING_TABLE.search(str(error))
        if missing is None:
            return cause_of(error)
        names = [*self._pipeline.tables, *self._pipeline.sources, *self._steps]
        earlier = names[: names.index(name)]
        return f"There is no table, source or step {missing[1]} before it; {meant(missing[1], earlier)}"

    def _is_new(self, error: BaseException) -> bool:
        sentence = cause_of(error)
        is_new = sentence not in self._failures
        self._failures.add(sentence)
        return is_new

    def _kind(self, name: str) -> str:
        if name in self._pipeline.tables:
            return "table"
        return "source" if name in self._pipeline.sources else "step"

    def _place(self, name: str, error: BaseException) -> tuple[int | None, str | None]:
        """The line of an error, and the file if it is not the pipeline's."""
        place, step = place_in_sql(error), self._steps.get(name)
        first = self._lines.get(("sql", name))
        if place is None or step is None or step.sql is None or first is None:
            return self._lines.get((self._kind(name), name)), None
        if step.sql_file is not None:
            return place.line, str(self._directory / step.sql_file)
        return line_of_sql(self._texts, first, step.sql, place), None


def check_mode(frame: "DataFrame", mode: str) -> None:
    """Raises Spark's error if a stream cannot be written in this output mode. With Spark Connect nothing is
    checked."""
    if not hasattr(frame, "_jdf"):
        return
    java: Any = frame.sparkSession._jvm
    modes = java.org.apache.spark.sql.streaming.OutputMode
    chosen = {"append": modes.Append, "update": modes.Update, "complete": modes.Complete}[mode]()
    checker = java.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    checker.checkForStreaming(frame._jdf.queryExecution().analyzed(), chosen)


def line_of_sql(texts: list[str], first: int, sql: str, place: PlaceInSql) -> int:
    """The line of the file, from 1 on, for a place in SQL that begins at the line `first`. YAML may join
    lines, so words are counted: they are the same in the file and in the text."""
    lines = sql.splitlines()
    before = "\n".join([*lines[: place.line - 1], lines[place.line - 1][: place.position]])
    left = len(before.split())
    if before and not before[-1].isspace():
        # The place is within a word.
        left -= 1
    begin = sql.split()[0]
    is_begun = False
    for number, text in enumerate(texts[first - 1 :], start=first):
        words = text.split()
        if not is_begun:
            # The first line also has the name of the field, or only a sign such as >.
            starts = [index for index, word in enumerate(words) if word.lstrip("\"'{[") == begin]
            if not starts:
                continue
            is_begun = True
            words = words[starts[0] :]
        if left < len(words):
            return number
        left -= len(words)
    return first
