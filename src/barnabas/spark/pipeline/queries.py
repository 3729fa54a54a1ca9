"""The queries of a pipeline. Sinks and dead letters that hang on one root share a query (lineage.py and
grouping.py say which); one that hangs there alone is written by a query that needs no second step. A table
that gets the rows of a source as they are is written by the tasks that read them (direct.py).

Each query has its own checkpoint and consumer group, named after it."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from barnabas.spark.option_kinds import DURATION
from barnabas.spark.pipeline.definition import (
    AVAILABLE_NOW,
    Aside,
    Pipeline,
    Sink,
    TableSink,
    TopicSink,
    asides,
)
from barnabas.spark.pipeline.direct import direct_sink, topic_rows
from barnabas.spark.pipeline.frames import Frames
from barnabas.spark.pipeline.functions import with_functions
from barnabas.spark.pipeline.grouping import Group, groups_of, members_of, mode_of, new_record
from barnabas.spark.pipeline.lineage import roots_of
from barnabas.spark.pipeline.other_sinks import write_batch
from barnabas.spark.pipeline.outputs import FORMAT, Output, letters_output, topic_output
from barnabas.spark.pipeline.recording import Checkpoints
from barnabas.spark.pipeline.shared import SharedWrite, has_bad
from barnabas.spark.pipeline.sources import Streams
from barnabas.spark.pipeline.table_sources import table_frame
from barnabas.spark.session import in_fewer_tasks, register_own_source
from barnabas.spark.tables.direct import write_topic
from barnabas.spark.tables.writing import EachBatch, write_stream

Trigger = dict[str, Any]
EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


class Planned(NamedTuple):
    """A query that can be started, and started again."""

    name: str
    start: Callable[[], Any]


class Place(NamedTuple):
    """Where a pipeline runs: its session, and the directory for relative paths."""

    spark: SparkSession
    pipeline: Pipeline
    directory: Path

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.pipeline, self.directory, self.spark)

    def streams(self, query: str) -> Streams:
        return Streams(self.spark, self.pipeline, query)

    def frames(self, query: str) -> Frames:
        """The frames as streams; each query builds its own, because it commits offsets for its own group."""
        streams = self.streams(query)
        roots = {name: partial(streams.rows, name) for name in self.pipeline.sources}
        for name, origin in self.pipeline.tables.items():
            roots[name] = partial(table_frame, self.spark, origin, self.directory)
        names = [*roots, *(step.name for step in self.pipeline.steps)]
        return Frames(self.spark, self.pipeline, self.directory, roots, names)


def planned_queries(place: Place, once: bool) -> list[Planned]:
    """All queries of the pipeline. Stores which sinks are written by which query."""
    pipeline, checkpoints = place.pipeline, place.checkpoints
    checkpoints.set_up()
    written = [sink.source for sink in pipeline.sinks] + [aside.frame for aside in asides(pipeline)]
    roots = roots_of(pipeline, place.frames("plan"), written)
    members = members_of(pipeline, roots)
    record = checkpoints.record()
    groups = groups_of(members, record, {each.name for each in members if checkpoints.has(each.name)})
    checkpoints.keep(new_record(groups, record))
    trigger = {"availableNow": True} if once or pipeline.trigger == AVAILABLE_NOW else _every(pipeline)
    planned = []
    for group in groups:
        names = {name for name, root in roots.items() if root == group.root}
        planned.append(Planned(group.name, partial(_start_group, place, group, names, trigger)))
    return planned


def _start_group(place: Place, group: Group, names: Collection[str], trigger: Trigger) -> Any:
    register_own_source(place.spark)
    direct = direct_sink(place.pipeline, group)
    if direct is not None:
        return _start_direct(place, group, direct, trigger)
    if group.is_shared:
        return _start_shared(place, group, names, trigger)
    return _start_alone(place, group, trigger)


def _every(pipeline: Pipeline) -> Trigger:
    return {"processingTime": f"{DURATION.parse(pipeline.trigger)} milliseconds"}


def _start_shared(place: Place, group: Group, names: Collection[str], trigger: Trigger) -> Any:
    if group.root in place.pipeline.sources:
        frame = place.streams(group.name).shared(group.root, has_bad=has_bad(group))
    else:
        frame = place.frames(group.name).unchecked(group.root)
    # With Spark Connect the batches are written by a process of the server.
    pipeline = with_functions(place.pipeline, place.directory) if is_remote() else place.pipeline
    writer = (
        frame.writeStream.queryName(f"{pipeline.name}.{group.name}")
        .option("checkpointLocation", place.checkpoints.path(group.name))
        .foreachBatch(SharedWrite(pipeline, place.directory, group, names))
        .outputMode(group.mode)
        .trigger(**trigger)
    )
    with _without_empty_batches(place.spark) if group.root in pipeline.sources else nullcontext():
        return writer.start()


@contextmanager
def _without_empty_batches(spark: SparkSession) -> Iterator[None]:
    """Queries that start in this block run no batch when only the watermark has changed. Sums need such a
    batch to write their last rows. Where duplicates are dropped it would only forget old rows, and the next
    batch does that, too."""
    before = spark.conf.get(EMPTY_BATCHES)
    spark.conf.set(EMPTY_BATCHES, "false")
    try:
        yield
    finally:
        spark.conf.set(EMPTY_BATCHES, str(before))


def _start_direct(place: Place, group: Group, sink: TableSink, trigger: Trigger) -> Any:
    checkpoint = place.checkpoints.path(group.name)
    rows = topic_rows(place.pipeline, sink, group, checkpoint)
    name = f"{place.pipeline.name}.{group.name}"
    return write_topic(place.spark, rows, sink.target(place.directory), checkpoint, name, trigger)


def _start_alone(place: Place, group: Group, trigger: Trigger) -> Any:
    """Start the query of one sink, or of the dead letters of one frame."""
    for sink in place.pipeline.sinks:
        if sink.name == group.name:
            return _start_sink(place, group.root, sink, trigger)
    (aside,) = (each for each in asides(place.pipeline) if each.query == group.name)
    return _start_aside(place, aside, trigger)


def _start_sink(place: Place, root: str, sink: Sink, trigger: Trigger) -> Any:
    frame = place.frames(sink.name)[sink.source]
    source = place.pipeline.sources.get(root)
    if source is not None and not source.dedupe:
        frame = in_fewer_tasks(frame)
    if isinstance(sink, TableSink) and sink.column is None:
        target = sink.target(place.directory)
        return write_stream(frame, target, place.checkpoints.path(sink.name), sink.name, trigger)
    if not isinstance(sink, TopicSink):
        return _start_batches(place, frame, sink, trigger)
    output = topic_output(place.pipeline, sink, frame)
    return _start(place, output, sink.name, mode_of(sink), trigger)


def _start_batches(place: Place, frame: DataFrame, sink: Sink, trigger: Trigger) -> Any:
    checkpoint = place.checkpoints.path(sink.name)
    pipeline = with_functions(place.pipeline, place.directory) if is_remote() else place.pipeline
    (written,) = (each for each in pipeline.sinks if each.name == sink.name)
    write = partial(write_batch, written, directory=place.directory)
    return (
        frame.writeStream.foreachBatch(EachBatch(write, checkpoint))
        .option("checkpointLocation", checkpoint)
        .outputMode(mode_of(sink))
        .queryName(f"{place.pipeline.name}.{sink.name}")
        .trigger(**trigger)
        .start()
    )


def _start_aside(place: Place, aside: Aside, trigger: Trigger) -> Any:
    frames, streams = place.frames(aside.query), place.streams(aside.query)
    output = letters_output(place.pipeline, aside.query, [aside], frames, streams.undecodable)
    return _start(place, output, aside.query, "append", trigger)


def _start(place: Place, output: Output, query: str, mode: str, trigger: Trigger) -> Any:
    return (
        output.records.writeStream.format(FORMAT)
        .option("checkpointLocation", place.checkpoints.path(query))
        .options(**output.options)
        .outputMode(mode)
        .queryName(f"{place.pipeline.name}.{query}")
        .trigger(**trigger)
        .start()
    )
