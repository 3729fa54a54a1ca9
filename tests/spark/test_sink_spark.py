"""The sink on a real Spark: batch and streaming, restarts from a checkpoint, and errors."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from tests.spark.running import run_to_its_end
from tests.spark.topics import Topics
from tests.spark.writing import committed_records, committed_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def target(topics: Topics, topic: str) -> str:
    return topics.make(f"{topic}-out")


@pytest.fixture
def sink(topics: Topics, target: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": topics.bootstrap, "topic": target}


@pytest.fixture
def exact(sink: dict[str, str], target: str) -> dict[str, str]:
    return {**sink, "delivery": "exactly-once", "transactional.id": f"id of {target}"}


def copy(frame: "DataFrame", options: dict[str, str], checkpoint: str) -> list[Any]:
    """Copy everything there is now; returns Spark's reports of the batches."""
    writer = frame.writeStream.format("barnabas").options(**options)
    return run_to_its_end(writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start)


def test_jobs_write_all_rows(
    spark: "SparkSession", topics: Topics, target: str, sink: dict[str, str], exact: dict[str, str]
) -> None:
    frame = spark.range(1000).selectExpr(
        "cast(id as string) AS key",
        "cast(id as string) AS value",
        "array(struct('from' AS key, cast('spark' AS binary) AS value)) AS headers",
    )
    frame.write.format("barnabas").options(**sink).mode("append").save()
    assert committed_values(topics, target) == list(range(1000))
    frame.write.format("barnabas").options(**exact).mode("append").save()
    records = committed_records(topics.bootstrap, target)
    assert sorted(int(record.value) for record in records) == sorted([*range(1000)] * 2)
    assert {tuple(record.headers) for record in records} == {(("from", b"spark"),)}
    with pytest.raises(AnalysisException, match=r"id is not part of a record: .* records have value, key"):
        spark.range(1).selectExpr("id", "'x' AS value").write.format("barnabas").options(**sink).mode(
            "append"
        ).save()


def test_a_stream_is_written_once_over_restarts_and_lost_commits(
    stream: Callable[..., "DataFrame"],
    topics: Topics,
    topic: str,
    target: str,
    exact: dict[str, str],
    tmp_path: Any,
) -> None:
    topics.numbers(topic, 0, 30)
    topics.numbers(topic, 30, 60, partition=1)
    checkpoint = tmp_path / "checkpoint"
    frame = stream(startingOffsets="earliest", maxOffsetsPerTrigger="24", columns="key,value")
    assert [report["numInputRows"] for report in copy(frame, exact, str(checkpoint))] == [24, 24, 12]
    assert committed_values(topics, target) == list(range(60))
    # Spark could not commit its last batch: the batch is tried again.
    for path in (checkpoint / "commits").glob("*2*"):
        path.unlink()
    topics.numbers(topic, 60, 70)
    copy(frame, exact, str(checkpoint))
    assert committed_values(topics, target) == list(range(70))
    # With a new checkpoint everything would be written again.
    with pytest.raises(StreamingQueryException, match="onForeignMarker=replace"):
        copy(frame, exact, str(tmp_path / "another"))
    assert committed_values(topics, target) == list(range(70))
