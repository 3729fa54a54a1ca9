"""A pipeline on a real standalone cluster: one master and two workers, started by PySpark's own script."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.clients.broker_process import PROGRAM
from tests.spark.bare_python import ON_WORKERS, bare_python
from tests.spark.daemons import Daemon

from barnabas.spark.tables import upserting
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker

PIPELINE = """\
name: {topic}
bootstrap: {bootstrap}
checkpoint: ./state
sources:
  numbers: {{topic: {topic}, decode: text}}
steps:
  - {{name: doubled, python: "beside:doubled", from: [numbers]}}
  - {{name: newest, sql: "SELECT number % 120000 AS id, number FROM doubled"}}
sinks:
  - {{from: doubled, table: {{path: ./tables/doubled}}}}
  - {{from: newest, table: {{path: ./tables/newest, mode: upsert, key: [id], order_by: number}}}}
"""
# Workers import this module, since it has a function that they call.
BESIDE = """\
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType


def twice(text):
    return int(text) * 2


def doubled(spark, numbers):
    return numbers.select(udf(twice, LongType())("value").alias("number"))
"""
# So many rows are upserted by tasks.
ROWS = upserting.ROWS_HERE_MAX + 20_000


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """spark://host:port of a master with two workers."""
    daemons = [
        Daemon(
            tmp_path, "master", "spark-class", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"
        )
    ]
    try:
        url = daemons[0].logged(r"Starting Spark master at (spark://\S+)")
        monkeypatch.setenv(ON_WORKERS, "1")
        for name in ("worker1", "worker2"):
            kind = "org.apache.spark.deploy.worker.Worker"
            limits = ("--cores", "1", "--memory", "700m", "--webui-port", "0", "--host", "127.0.0.1")
            daemons.append(Daemon(tmp_path, name, "spark-class", kind, *limits, url))
        monkeypatch.delenv(ON_WORKERS)
        for worker in daemons[1:]:
            worker.logged(r"(Successfully registered with master)")
        yield url
    finally:
        for daemon in reversed(daemons):
            daemon.stop()


def run(master: str, folder: Path, python: Path) -> subprocess.CompletedProcess[str]:
    command = [PROGRAM, "pipeline", "run", folder / "pipeline.yaml", "--once", "--master", master]
    command += ["--conf", "spark.executor.memory=512m", "--conf", "spark.driver.host=127.0.0.1"]
    environment = {**os.environ, "PYSPARK_PYTHON": str(python)}
    return subprocess.run(command, capture_output=True, text=True, timeout=560, env=environment)


@pytest.fixture
def pipeline(broker: Broker, topic: str, tmp_path: Path) -> str:
    """A pipeline with a module, in a directory. Returns its topic."""
    (tmp_path / "pipeline.yaml").write_text(PIPELINE.format(topic=topic, bootstrap=broker.bootstrap))
    (tmp_path / "beside.py").write_text(BESIDE)
    return topic


@pytest.mark.timeout(600)
def test_a_pipeline_runs_on_workers_without_our_package(
    master: str, topics: Any, pipeline: str, tmp_path: Path
) -> None:
    for partition in range(2):
        topics.numbers(pipeline, partition * ROWS // 2, (partition + 1) * ROWS // 2, partition)
    done = run(master, tmp_path, bare_python(tmp_path))
    assert done.returncode == 0, done.stderr[-4000:]
    rows = store_of(TableTarget(str(tmp_path / "tables" / "doubled"))).read()
    assert sorted(rows.column("number").to_pylist()) == list(range(0, 2 * ROWS, 2))
    newest = store_of(TableTarget(str(tmp_path / "tables" / "newest"))).read().to_pylist()
    expected = {number % 120_000: number for number in range(0, 2 * ROWS, 2)}
    assert {row["id"]: row["number"] for row in newest} == expected
    assert len(newest) == len(expected)
    # Both workers had executors.
    assert all(list((tmp_path / f"worker{number}-work").rglob("stderr")) for number in (1, 2))


@pytest.mark.slow
def test_what_is_missing_on_workers_is_reported(
    master: str, topics: Any, pipeline: str, tmp_path: Path
) -> None:
    done = run(master, tmp_path, bare_python(tmp_path, "pyarrow"))
    assert done.returncode == 1
    assert re.search(
        r"The workers cannot run the tasks: \S+ \(Python 3\.\d+\.\d+, \w+\) cannot import pyarrow: .*"
        r" pip install 'barnabas\[spark\]'",
        done.stderr,
    )
