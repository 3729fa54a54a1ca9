"""What is written to topics: the rows of a frame as records, and dead letters, with the options of the data
source. Streams and single batches of a stream are written with the same code."""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from barnabas.spark.pipeline.dead_letters import rejected, undecodable
from barnabas.spark.pipeline.definition import Aside, Pipeline, TopicSink
from barnabas.spark.pipeline.frames import Frames
from barnabas.spark.pipeline.options import EXACTLY_ONCE, dead_letter_options, sink_options
from barnabas.spark.pipeline.quality import quarantined

FORMAT = "barnabas"


class Output(NamedTuple):
    """Records for a topic: key, value and, for dead letters, headers."""

    records: DataFrame
    options: dict[str, str]

    @property
    def is_exact(self) -> bool:
        return self.options["delivery"] == EXACTLY_ONCE


def topic_output(pipeline: Pipeline, sink: TopicSink, frame: DataFrame) -> Output:
    return Output(_records(frame, sink), sink_options(pipeline, sink))


def letters_output(
    pipeline: Pipeline,
    query: str,
    letters: Iterable[Aside],
    frames: Frames,
    bad_records: Callable[[str], DataFrame],
) -> Output:
    """The dead letters of some frames, for one topic; `bad_records` are the undecodable ones of a source."""
    parts = [
        undecodable(bad_records(aside.frame), pipeline.name, aside.frame)
        if aside.is_undecodable
        else rejected(
            quarantined(frames.unchecked(aside.frame), pipeline.quality[aside.frame]),
            pipeline.name,
            aside.frame,
        )
        for aside in letters
    ]
    return Output(reduce(DataFrame.unionByName, parts), dead_letter_options(pipeline, query))


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
