"""The DataFrames of a pipeline: sources are decoded, deduplicated and checked by rules; then come the steps.

Every query builds its own frames, because each commits its offsets for its own group. Frames are plans:
nothing is read before a query runs."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from barnabas.spark.pipeline.definition import Pipeline, Source, Step
from barnabas.spark.pipeline.quality import passing

PREFIX = "_"
ERROR = f"{PREFIX}error"
# Columns of the record that a decoded row keeps; and all columns of the record, which a dead letter needs.
ORIGIN = "_topic string, _partition int, _offset bigint, _timestamp timestamp"
WHOLE_RECORD = f"{ORIGIN}, _key binary, _value binary, _headers array<struct<key: string, value: binary>>"


class Frames:
    """Frames by the names of sources and steps; each is also a view with that name, for SQL."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, query: str, directory: Path) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._group = pipeline.group_of(query)
        self._directory = directory
        # The frames before the quality rules, for the rows that break a rule.
        self.unchecked: dict[str, DataFrame] = {}
        self._frames: dict[str, DataFrame] = {}
        for name, source in pipeline.sources.items():
            self._add(name, self._source(source))
        for step in pipeline.steps:
            self._add(step.name, self._step(step))

    def __getitem__(self, name: str) -> DataFrame:
        return self._frames[name]

    def _add(self, name: str, frame: DataFrame) -> None:
        self.unchecked[name] = frame
        checked = passing(frame, self._pipeline.quality.get(name, ()))
        checked.createOrReplaceTempView(name)
        self._frames[name] = checked

    def _source(self, source: Source) -> DataFrame:
        frame = self.decoded(source, ORIGIN) if source.decode in ("json", "avro") else self._plain(source)
        if ERROR in frame.columns:
            if source.bad_records == "quarantine":
                frame = frame.filter(F.col(ERROR).isNull())
            frame = frame.drop(ERROR)
        if source.watermark is not None:
            frame = frame.withWatermark(source.watermark.column, source.watermark.delay)
        if source.dedupe:
            frame = frame.dropDuplicatesWithinWatermark(list(source.dedupe))
        return frame

    def decoded(self, source: Source, record: str) -> DataFrame:
        """The columns of the value, those of `record`, and `_error`, which is null for good records."""
        bad = "fail" if source.bad_records == "fail" else "null"
        reader = self._reader(source).option("decode", source.decode).option("badRecords", bad)
        if source.decode == "avro" and source.registry is not None and source.schema is None:
            return reader.load()
        return reader.schema(f"{source.schema}, {record}, {ERROR} string").load()

    def _plain(self, source: Source) -> DataFrame:
        frame = self._reader(source).load()
        if source.decode == "text":
            texts = [F.col(name).cast("string").alias(name) for name in ("key", "value")]
            return frame.select(*texts, *[name for name in frame.columns if name not in ("key", "value")])
        return frame

    def _reader(self, source: Source) -> DataStreamReader:
        reader = self._spark.readStream.format("barnabas")
        reader = reader.option("kafka.bootstrap.servers", self._pipeline.bootstrap)
        for name, value in self._pipeline.client.items():
            reader = reader.option(f"kafka.{name}", value)
        if source.pattern is not None:
            reader = reader.option("subscribePattern", source.pattern)
        else:
            reader = reader.option("subscribe", ",".join(source.topics))
        if source.registry is not None:
            reader = reader.option("schema.registry.url", source.registry)
        settings = {
            "startingOffsets": source.start,
            "commitOffsets": self._group,
            "isolation.level": "read_committed",
            **source.options,
        }
        return reader.options(**settings)

    def _step(self, step: Step) -> DataFrame:
        if step.sql is not None:
            return self._spark.sql(step.sql)
        inputs = {name: self._frames[name] for name in step.inputs}
        result = function_of(step, self._directory)(self._spark, **inputs)
        if not hasattr(result, "createOrReplaceTempView"):
            raise TypeError(
                f"The function of step {step.name} must return a DataFrame, but returned"
                f" {type(result).__name__}."
            )
        frame: DataFrame = result
        return frame


def function_of(step: Step, directory: Path) -> Callable[..., Any]:
    """The function of a step; its module is searched beside the pipeline's file first."""
    if callable(step.python):
        return step.python
    module_name, _, name = str(step.python).partition(":")
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    function = getattr(importlib.import_module(module_name), name, None)
    if not callable(function):
        raise TypeError(f"Step {step.name} needs a function {name} in the module {module_name}.")
    checked: Callable[..., Any] = function
    return checked
