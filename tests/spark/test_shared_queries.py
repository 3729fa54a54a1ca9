"""Sinks that share a query: each has every row once, also if the driver dies between two of them; and none
misses rows when the file of the pipeline changes."""

import json
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.processes import kill, session_of
from tests.spark.writing import committed_records

from barnabas.spark.pipeline.loading import load
from barnabas.spark.pipeline.progress import QueryProgress
from barnabas.spark.pipeline.running import run
from barnabas.spark.pipeline.status import status_of
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker

HEAD = """\
name: {topic}
bootstrap: {bootstrap}
checkpoint: ./state
dead_letters: {topic}-dead
sources:
  events:
    topic: {topic}
    decode: json
    schema: "id long, at timestamp"
    bad_records: quarantine
    watermark: {{column: at, delay: 1 hour}}
    dedupe: [id]
    options: {{maxOffsetsPerTrigger: "4"}}
"""
STEPS = """\
steps:
  - {{name: even, sql: "SELECT id, at FROM events WHERE id % 2 = 0"}}
"""
SINKS = """\
sinks:
  - {{from: events, table: {{path: ./tables/all}}}}
  - {{from: events, topic: {topic}-out, key: id}}
  - {{from: even, table: {{path: ./tables/even, mode: upsert, key: [id]}}}}
"""
TABLES = """\
sinks:
  - {{from: events, table: {{path: ./tables/all}}}}
  - {{from: even, table: {{path: ./tables/even, format: iceberg}}}}
  - {{from: even, table: {{path: ./tables/third, format: parquet, partition_by: [at]}}}}
"""
LATER = "  - {{from: even, table: {{path: ./tables/later, format: parquet}}}}\n"
Make = Callable[[str], Path]


def event(number: int) -> bytes:
    return json.dumps({"id": number, "at": "2026-01-05T09:00:00Z"}).encode()


@pytest.fixture
def topic(topics: Any) -> str:
    topic = f"s-{uuid.uuid4().hex[:10]}"
    for name in (topic, f"{topic}-out", f"{topic}-dead"):
        topics.make(name)
    return topic


@pytest.fixture
def make(broker: Broker, topic: str, tmp_path: Path) -> Make:
    """Write the file of the pipeline."""

    def make(text: str) -> Path:
        path = tmp_path / "pipeline.yaml"
        path.write_text(text.format(topic=topic, bootstrap=broker.bootstrap))
        return path

    return make


def quiet(_: list[QueryProgress]) -> None:
    return None


def ids(folder: Path, name: str, form: str = "delta") -> list[int]:
    rows = store_of(TableTarget(str(folder / "tables" / name), format=form)).read()
    return sorted(rows.column("id").to_pylist())


def values(broker: Broker, topic: str) -> Counter[bytes]:
    return Counter(record.value for record in committed_records(broker.bootstrap, topic))


def run_until_it_dies(path: Path, *where: str) -> None:
    command = [sys.executable, "-m", "tests.spark.dying_pipeline", path, *where]
    process = subprocess.Popen(command, start_new_session=True)
    assert process.wait(200) == -signal.SIGKILL
    for left in session_of(process.pid):
        kill(left)


def test_a_driver_that_dies_between_two_tables_of_one_job(
    spark: SparkSession, broker: Broker, topics: Any, topic: str, make: Make, tmp_path: Path
) -> None:
    path = make(HEAD + STEPS + TABLES)
    topics.put(topic, [event(0), event(1), event(0), b"bad", event(2), event(3), event(1), b"bad"])
    run_until_it_dies(path, "1", "tables")
    assert ids(tmp_path, "all") == [0, 1, 2, 3], "the first table has the second batch"
    assert ids(tmp_path, "even", "iceberg") == ids(tmp_path, "third", "parquet") == [0]

    run(spark, load(path), tmp_path, once=True, watch=quiet)
    assert ids(tmp_path, "all") == [0, 1, 2, 3]
    assert ids(tmp_path, "even", "iceberg") == ids(tmp_path, "third", "parquet") == [0, 2]
    assert values(broker, f"{topic}-dead") == {b"bad": 2}


def test_a_driver_that_dies_between_two_sinks(
    spark: SparkSession, broker: Broker, topics: Any, topic: str, make: Make, tmp_path: Path
) -> None:
    path = make(HEAD + STEPS + SINKS)
    topics.put(topic, [event(0), event(1), event(0), b"bad", event(2), event(3), event(1), b"bad"])
    run_until_it_dies(path, "2")
    assert ids(tmp_path, "all") == [0, 1, 2, 3], "the first sinks have the second batch"
    assert ids(tmp_path, "even") == [0], "the last sinks do not have it"

    done = run(spark, load(path), tmp_path, once=True, watch=quiet)
    assert [(each.name, each.state) for each in done] == [("events", "done")]
    assert ids(tmp_path, "all") == [0, 1, 2, 3]
    assert ids(tmp_path, "even") == [0, 2]
    out = [json.loads(value)["id"] for value in values(broker, f"{topic}-out").elements()]
    assert sorted(out) == [0, 1, 2, 3]
    assert values(broker, f"{topic}-dead") == {b"bad": 2}


def test_a_sink_that_is_added_later_misses_nothing(
    spark: SparkSession, topics: Any, topic: str, make: Make, tmp_path: Path
) -> None:
    topics.put(topic, [event(number) for number in range(4)])
    run(spark, load(make(HEAD + STEPS + SINKS)), tmp_path, once=True, watch=quiet)
    topics.put(topic, [event(number) for number in range(4, 8)])
    pipeline = load(make(HEAD + STEPS + SINKS + LATER))
    run(spark, pipeline, tmp_path, once=True, watch=quiet)
    assert ids(tmp_path, "all") == list(range(8))
    assert ids(tmp_path, "even") == ids(tmp_path, "later", "parquet") == [0, 2, 4, 6]
    assert [each.query for each in status_of(pipeline, tmp_path).queries] == ["events", "even-to-later"]
