"""The queries of a pipeline: one for each sink, and one for each frame whose bad rows are dead letters.

Each has its own checkpoint and consumer group, named after it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from barnabas.spark.option_kinds import DURATION
from barnabas.spark.pipeline.dead_letters import rejected, undecodable
from barnabas.spark.pipeline.definition import (
    AVAILABLE_NOW,
    Aside,
    Pipeline,
    Sink,
    TableSink,
    TopicSink,
    asides,
    path_in,
)
from barnabas.spark.pipeline.frames import WHOLE_RECORD, Frames
from barnabas.spark.pipeline.quality import quarantined
from barnabas.spark.tables.writing import write_stream

EXACTLY_ONCE = "exactly-once"


class Planned(NamedTuple):
    """A query that can be started, and started again."""

    name: str
    start: Callable[[], Any]


class Place(NamedTuple):
    """Where a pipeline runs: its session, and the directory for relative paths."""

    spark: SparkSession
    pipeline: Pipeline
    directory: Path

    def checkpoint(self, query: str) -> str:
        return f"{path_in(self.directory, self.pipeline.checkpoint)}/{query}"

    def frames(self, query: str) -> Frames:
        return Frames(self.spark, self.pipeline, query, self.directory)


def planned_queries(place: Place, once: bool) -> list[Planned]:
    trigger = {"availableNow": True} if once or place.pipeline.trigger == AVAILABLE_NOW else _every(place)
    sinks = [Planned(sink.name, partial(_start_sink, place, sink, trigger)) for sink in place.pipeline.sinks]
    rest = [
        Planned(aside.query, partial(_start_aside, place, aside, trigger)) for aside in asides(place.pipeline)
    ]
    return sinks + rest


def _every(place: Place) -> dict[str, Any]:
    return {"processingTime": f"{DURATION.parse(place.pipeline.trigger)} milliseconds"}


def _start_sink(place: Place, sink: Sink, trigger: dict[str, Any]) -> Any:
    frame = place.frames(sink.name)[sink.source]
    if isinstance(sink, TableSink):
        target = sink.target(place.directory)
        return write_stream(frame, target, place.checkpoint(sink.name), sink.name, trigger)
    records = _records(frame, sink)
    options = {
        "topic": sink.topic,
        "delivery": sink.delivery,
        **({"transactional.id": _transactional_id(place, sink)} if sink.delivery == EXACTLY_ONCE else {}),
        **sink.options,
    }
    return _start(place, records, sink.name, options, trigger, sink.mode or "append")


def _transactional_id(place: Place, sink: TopicSink) -> str:
    return sink.transactional_id or place.pipeline.transactional_id_of(sink.name)


def _records(frame: DataFrame, sink: TopicSink) -> DataFrame:
    """The rows with the columns key and value for the sink."""
    if sink.value == "none":
        names = [name for name in ("key", "value", "headers", "partition") if name in frame.columns]
        return frame.select(*names)
    key = F.lit(None).cast("string") if sink.key is None else F.col(sink.key).cast("string")
    if sink.value == "text":
        return frame.select(key.alias("key"), F.col("value").cast("string").alias("value"))
    own = [name for name in frame.columns if not name.startswith("_")]
    return frame.select(key.alias("key"), F.to_json(F.struct(*own)).alias("value"))


def _start_aside(place: Place, aside: Aside, trigger: dict[str, Any]) -> Any:
    pipeline = place.pipeline
    query, is_undecodable, name = aside
    frames = place.frames(query)
    if is_undecodable:
        letters = undecodable(frames.decoded(pipeline.sources[name], WHOLE_RECORD), pipeline.name, name)
    else:
        letters = rejected(quarantined(frames.unchecked[name], pipeline.quality[name]), pipeline.name, name)
    options = {
        "topic": str(pipeline.dead_letters),
        "delivery": EXACTLY_ONCE,
        "transactional.id": pipeline.transactional_id_of(query),
        "includeHeaders": "true",
    }
    return _start(place, letters, query, options, trigger, "append")


def _start(
    place: Place, frame: DataFrame, query: str, options: dict[str, str], trigger: dict[str, Any], mode: str
) -> Any:
    settings = {f"kafka.{name}": value for name, value in place.pipeline.client.items()}
    return (
        frame.writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", place.pipeline.bootstrap)
        .option("checkpointLocation", place.checkpoint(query))
        .options(**settings, **options)
        .outputMode(mode)
        .queryName(f"{place.pipeline.name}.{query}")
        .trigger(**trigger)
        .start()
    )
