"""The DataFrames of a pipeline: steps are applied to sources, and rules drop rows. A frame is built when it
is needed, together with the frames that it uses.

The same code makes the frames of a stream and those of one batch of it: they begin with different roots."""

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from barnabas.spark.pipeline.definition import Pipeline, Step
from barnabas.spark.pipeline.functions import load_function
from barnabas.spark.pipeline.quality import passing

Roots = Mapping[str, Callable[[], DataFrame]]


class Frames:
    """Frames by the names of sources and steps; each is also a view with that name, for SQL.

    `roots` make the frames that are not built from others. `names` are the frames that steps may use."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, directory: Path, roots: Roots, names: Collection[str]
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._directory = directory
        self._roots = roots
        self._names = names
        self._steps = {step.name: step for step in pipeline.steps}
        # The frames before the quality rules, and after them.
        self._unchecked: dict[str, DataFrame] = {}
        self._frames: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> DataFrame:
        """The rows of a frame that fulfil its rules."""
        if name not in self._frames:
            self.put(name, self.unchecked(name))
        return self._frames[name]

    def unchecked(self, name: str) -> DataFrame:
        """A frame before the quality rules, for the rows that break a rule."""
        if name not in self._unchecked:
            root = self._roots.get(name)
            self._unchecked[name] = self._step(self._steps[name]) if root is None else root()
        return self._unchecked[name]

    def put(self, name: str, unchecked: DataFrame) -> None:
        """Use this frame from now on; steps that were built before do not change."""
        self._unchecked[name] = unchecked
        checked = passing(unchecked, self._pipeline.quality.get(name, ()))
        checked.createOrReplaceTempView(name)
        self._frames[name] = checked

    def _step(self, step: Step) -> DataFrame:
        inputs = {name: self[name] for name in inputs_of(step, self._pipeline) if name in self._names}
        if step.sql is not None:
            return self._spark.sql(step.sql)
        result = function_of(step, self._directory)(self._spark, **inputs)
        if not hasattr(result, "createOrReplaceTempView"):
            raise TypeError(
                f"The function of step {step.name} must return a DataFrame, but returned"
                f" {type(result).__name__}."
            )
        frame: DataFrame = result
        return frame


def inputs_of(step: Step, pipeline: Pipeline) -> list[str]:
    """The frames that a step uses. For SQL these are all names of earlier frames that occur in it: if one of
    them is only the name of a column there, its view is not used."""
    if step.sql is None:
        return list(step.inputs)
    words = {word.lower() for word in re.findall(r"\w+", step.sql)}
    names = [each.name for each in pipeline.steps]
    earlier = [*pipeline.tables, *pipeline.sources, *names[: names.index(step.name)]]
    return [name for name in earlier if name.lower() in words]


def function_of(step: Step, directory: Path) -> Callable[..., Any]:
    """The function of a step; its module is searched beside the pipeline's file first."""
    return load_function(step.python, directory, f"Step {step.name}")
