"""Streaming queries on a real Spark: checkpoints, failures, restarts."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.running import run_to_its_end
from tests.spark.topics import Topics

from barnabas.ids import TopicPartition
from barnabas.spark.session import register_own_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Stream = Callable[..., "DataFrame"]


class Collected:
    """A sink that stores the numbers of each batch and fails on request."""

    def __init__(self) -> None:
        self.batches: dict[int, list[int]] = {}
        self.fails = False

    def __call__(self, frame: Any, batch: int) -> None:
        numbers = sorted(int(row.value) for row in frame.select("value").collect())
        if self.fails:
            raise RuntimeError("this sink is out of order")
        self.batches[batch] = numbers

    @property
    def numbers(self) -> list[int]:
        return sorted(number for batch in self.batches.values() for number in batch)


def run(frame: "DataFrame", sink: Collected, checkpoint: str) -> list[Any]:
    """Read everything there is now, in batches; returns Spark's reports."""
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint)
    return run_to_its_end(writer.trigger(availableNow=True).start)


def test_a_query_reads_all_once_over_restarts(
    stream: Stream, topics: Topics, topic: str, checkpoint: Callable[..., str]
) -> None:
    topics.numbers(topic, 0, 10)
    topics.numbers(topic, 10, 20, partition=1)
    sink, group = Collected(), f"group-{topic}"
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "12", "commitOffsets": group}
    reports = run(stream(**options), sink, checkpoint())
    assert [len(batch) for batch in sink.batches.values()] == [12, 8]
    assert sink.numbers == list(range(20))
    assert reports[0]["sources"][0]["latestOffset"] == f'{{"{topic}": {{"0": 10, "1": 10}}}}'
    assert topics.committed(group) == {TopicPartition(topic, 0): 10, TopicPartition(topic, 1): 10}
    topics.numbers(topic, 20, 25)
    run(stream(**options), sink, checkpoint())
    assert sink.numbers == list(range(25))
    assert topics.committed(group)[TopicPartition(topic, 0)] == 15


def test_a_first_batch_that_fails_loses_nothing(
    stream: Stream, topics: Topics, topic: str, checkpoint: Callable[..., str]
) -> None:
    topics.numbers(topic, 0, 100)
    sink = Collected()
    # A start that is at another offset after the restart.
    begin = {"startingOffsets": "-5"}
    sink.fails = True
    with pytest.raises(StreamingQueryException, match="out of order"):
        run(stream(**begin), sink, checkpoint())
    topics.numbers(topic, 100, 150)
    sink.fails = False
    run(stream(**begin), sink, checkpoint())
    assert sink.batches[0] == list(range(95, 100)), "the batch that failed, as it was"
    assert sink.numbers == list(range(95, 150))


def test_records_that_are_deleted_before_they_are_read_are_an_error(
    stream: Stream, topics: Topics, topic: str, checkpoint: Callable[..., str]
) -> None:
    topics.numbers(topic, 0, 4)
    sink = Collected()
    run(stream(startingOffsets="earliest"), sink, checkpoint())
    topics.numbers(topic, 4, 9)
    topics.cut(topic, 6)
    deleted = rf"The records of {topic}-0 from offset 4 to 5 were deleted before"
    with pytest.raises(StreamingQueryException, match=deleted):
        run(stream(startingOffsets="earliest"), sink, checkpoint())
    run(stream(startingOffsets="earliest", failOnDataLoss="false"), sink, checkpoint())
    assert sink.numbers == [0, 1, 2, 3, 6, 7, 8]


def settings_of(spark: "SparkSession", frame: "DataFrame") -> int:
    """Which map of Java has the settings of a stream's Python source. Spark writes into it at the start."""
    # PySpark does not say that these have a value.
    assert frame._jdf is not None and spark._jvm is not None
    source = frame._jdf.queryExecution().analyzed().source().get().source()
    return int(spark._jvm.System.identityHashCode(source.dataSourceCls().envVars()))


def test_streams_that_start_at_once_can_have_sources_of_their_own(
    spark: "SparkSession", stream: Stream
) -> None:
    # A session of its own: what is registered stays.
    session = spark.newSession()
    frames = []
    for _ in range(2):
        register_own_source(session)
        options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "any"}
        frames.append(session.readStream.format("barnabas").options(**options).load())
    used = {settings_of(spark, frame) for frame in [*frames, stream()]}
    assert len(used) == 3
