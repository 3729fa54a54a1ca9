"""One query that writes each batch of a root to several sinks: the batch is read and decoded once.

Every sink stores which batch of the query it wrote last, in one step with the rows. When Spark runs a batch
again, because the process died between two sinks or before Spark stored that the batch is done, the sinks
that have it skip it."""

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession

from barnabas.spark.pipeline.definition import Pipeline, Sink, TableSink, TopicSink, asides
from barnabas.spark.pipeline.frames import Frames
from barnabas.spark.pipeline.grouping import Group, letters_name
from barnabas.spark.pipeline.other_sinks import write_batch
from barnabas.spark.pipeline.outputs import FORMAT, Output, letters_output, topic_output
from barnabas.spark.pipeline.recording import Checkpoints
from barnabas.spark.pipeline.sources import rows_of, undecodable_of
from barnabas.spark.row_wise import row_wise
from barnabas.spark.session import in_fewer_tasks
from barnabas.spark.tables.appending import Append, append_together
from barnabas.spark.tables.target import Mark

# Sinks that are written at the same time. More would only wait for Spark's tasks.
WRITES_MAX = 8
Write = Callable[[], None]
# What errors of Spark say when somebody stops the query.
STOPPED = ("SPARK_JOB_CANCELLED", "java.lang.InterruptedException")


def _is_stop(error: BaseException) -> bool:
    return any(word in str(error) for word in STOPPED)


class Interrupted(Exception):
    """The query was stopped during a batch. Spark searches the text of an error for these words: if it does
    not find them, or the text is long, it prints many lines about a failure."""

    def __init__(self) -> None:
        super().__init__("py4j.protocol.Py4JJavaError: An error occurred while calling Spark: " + STOPPED[1])


def has_bad(group: Group) -> bool:
    """Whether the frame of a shared query has undecodable records of its source."""
    return f"undecodable-{group.root}" in group.members


class SharedWrite:
    """The function for foreachBatch. With Spark Connect it is pickled and runs in a process of the server.

    `names` are the frames that are made from the root."""

    def __init__(self, pipeline: Pipeline, directory: Path, group: Group, names: Collection[str]) -> None:
        self._pipeline = pipeline
        self._directory = directory
        self._group = group
        self._names = names
        self._query: str | None = None
        self._pool: ThreadPoolExecutor | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}

    def __call__(self, batch: DataFrame, number: int) -> None:
        try:
            self._write_all(batch, number)
        except Exception as error:
            if _is_stop(error):
                raise Interrupted from None
            raise

    def _write_all(self, batch: DataFrame, number: int) -> None:
        if self._query is None:
            checkpoints = Checkpoints(self._pipeline, self._directory, batch.sparkSession)
            self._query = checkpoints.query_id(self._group.name)
        batch = in_fewer_tasks(batch)
        writes = list(self._writes(batch, self._query, number))
        if len(writes) == 1:
            writes[0]()
            return
        # Without this, Spark would read the batch again for each sink.
        batch.persist()
        try:
            self._side_by_side(batch.sparkSession, writes)
        finally:
            batch.unpersist()

    def _side_by_side(self, spark: SparkSession, writes: list[Write]) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(WRITES_MAX, "barnabas-sink")
        # Spark knows a job of the query by the local properties of the thread.
        inherit = inheritable_thread_target(spark)
        futures = [self._pool.submit(inherit(partial(_write_in_thread, spark, write))) for write in writes]
        # Wait for all, also after an error: no write may go on when Spark runs the batch again.
        errors = [error for future in futures if (error := future.exception()) is not None]
        if errors:
            raise min(errors, key=_is_stop)

    def _writes(self, batch: DataFrame, query: str, number: int) -> Iterator[Write]:
        group, pipeline = self._group, self._pipeline
        root = rows_of(batch) if has_bad(group) else batch
        frames = Frames(
            batch.sparkSession, pipeline, self._directory, {group.root: lambda: root}, self._names
        )
        appends, others = [], []
        for sink in pipeline.sinks:
            if sink.name in group.members:
                frame, mark = frames[sink.source], Mark(f"{query}/{sink.name}", number)
                append = self._append(sink, frame, mark, batch)
                if append is None:
                    others.append(self._write(sink, frame, mark))
                else:
                    appends.append(append)
        if appends:
            yield partial(append_together, batch, appends)
        yield from others
        letters = [aside for aside in asides(pipeline) if aside.query in group.members]
        if letters:
            name = letters_name(group.name)
            output = letters_output(pipeline, name, letters, frames, lambda _: undecodable_of(batch))
            yield partial(_write_records, output, Mark(f"{query}/{name}", number))

    def _append(self, sink: Sink, frame: DataFrame, mark: Mark, batch: DataFrame) -> Append | None:
        """For a sink that is written in one job with others of its kind; None for all others."""
        if not isinstance(sink, TableSink) or sink.mode != "append" or sink.column is not None:
            return None
        rows = row_wise(frame, batch)
        return None if rows is None else Append(frame, rows, sink.target(self._directory), mark)

    def _write(self, sink: Sink, frame: DataFrame, mark: Mark) -> Write:
        if isinstance(sink, TopicSink):
            return partial(_write_records, topic_output(self._pipeline, sink, frame), mark)
        return partial(write_batch, sink, frame, mark, self._directory)


def _write_in_thread(spark: SparkSession, write: Write) -> None:
    if hasattr(spark, "_jsparkSession"):
        # Spark looks for data sources written in Python in the active session, which each thread has.
        SparkSession._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)
    write()


def _write_records(output: Output, mark: Mark) -> None:
    writer = output.records.write.format(FORMAT).options(**output.options)
    if output.is_exact:
        writer = writer.option("queryId", mark.query).option("batchId", str(mark.batch))
    writer.mode("append").save()
