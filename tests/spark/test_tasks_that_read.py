"""How many tasks of Spark read the topics of a pipeline that runs on this machine."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.topics import Topics

from barnabas.spark.pipeline.loading import load
from barnabas.spark.pipeline.progress import QueryProgress
from barnabas.spark.pipeline.running import run
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker

PARTITIONS = 6
CORES = 2
PIPELINE = """\
name: {topic}
bootstrap: {bootstrap}
checkpoint: ./state
sources:
  events: {{topic: {topic}, decode: json, schema: "id long", options: {{{options}}}}}
steps:
  - {{name: large, sql: "SELECT id FROM events WHERE id >= 0"}}
  - {{name: once, sql: "SELECT DISTINCT id FROM events"}}
sinks:
"""
DIRECT = "  - {from: events, table: {path: ./tables/rows}}\n"
STEP = "  - {from: large, table: {path: ./tables/rows}}\n"
STATE = "  - {from: once, table: {path: ./tables/rows, mode: upsert, key: [id]}}\n"
SHARED = f"{STEP}  - {{from: large, table: {{path: ./tables/other, format: parquet}}}}\n"
Make = Callable[[str, str], Path]


@pytest.fixture
def topic(topics: Topics) -> str:
    """A topic with more partitions than the session has cores, and a record in each."""
    topic = topics.make(f"r-{uuid.uuid4().hex[:10]}", PARTITIONS)
    for number in range(PARTITIONS):
        topics.put(topic, [json.dumps({"id": number}).encode()], number)
    return topic


@pytest.fixture
def make(broker: Broker, topic: str, tmp_path: Path) -> Make:
    """Write the file of the pipeline, with these options of its source and these sinks."""

    def make(options: str, sinks: str) -> Path:
        path = tmp_path / "pipeline.yaml"
        path.write_text(PIPELINE.format(topic=topic, bootstrap=broker.bootstrap, options=options) + sinks)
        return path

    return make


def tasks_of(query: Any) -> int:
    """The input partitions of the last batch, from the plan that Spark has carried out."""
    leaves = query._jsq.streamingQuery().lastExecution().executedPlan().collectLeaves()
    return sum(leaves.apply(number).inputPartitions().size() for number in range(leaves.size()))


class FirstBatch:
    """Ends a pipeline, as Ctrl-C does, once each of its queries has ended a batch."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.tasks: list[int] = []

    def __call__(self, progress: list[QueryProgress]) -> None:
        if all(each.batches for each in progress):
            self.tasks = [tasks_of(query) for query in self._spark.streams.active]
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("sinks", "options", "tasks"),
    [
        pytest.param(DIRECT, "", CORES, id="direct"),
        pytest.param(STEP, "", CORES, id="step"),
        pytest.param(STATE, "", CORES, id="state"),
        pytest.param(SHARED, "", CORES, id="shared"),
        pytest.param(STEP, 'maxPartitions: "3"', 3, id="the file says at most"),
        pytest.param(DIRECT, 'minPartitions: "6"', PARTITIONS, id="the file says at least"),
    ],
)
def test_a_pipeline_has_a_task_for_each_core(
    spark: SparkSession, make: Make, sinks: str, options: str, tasks: int
) -> None:
    path, first = make(options, sinks), FirstBatch(spark)
    with pytest.raises(KeyboardInterrupt):
        run(spark, load(path), path.parent, once=False, watch=first)
    assert first.tasks == [tasks]
    rows = store_of(TableTarget(str(path.with_name("tables") / "rows"))).read()
    assert sorted(rows["id"].to_pylist()) == list(range(PARTITIONS))
