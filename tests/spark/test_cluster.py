"""A pipeline on a real standalone cluster: one master and two workers, started by PySpark's own script."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.clients.broker_process import PROGRAM
from tests.spark.daemons import Daemon

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
  - {{name: doubled, sql: "SELECT cast(value as int) * 2 AS number FROM numbers"}}
sinks:
  - {{from: doubled, table: {{path: ./tables/doubled}}}}
"""


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """spark://host:port of a master with two workers."""
    daemons = [
        Daemon(
            tmp_path, "master", "spark-class", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"
        )
    ]
    try:
        url = daemons[0].logged(r"Starting Spark master at (spark://\S+)")
        for name in ("worker1", "worker2"):
            kind = "org.apache.spark.deploy.worker.Worker"
            limits = ("--cores", "1", "--memory", "700m", "--webui-port", "0", "--host", "127.0.0.1")
            daemons.append(Daemon(tmp_path, name, "spark-class", kind, *limits, url))
        for worker in daemons[1:]:
            worker.logged(r"(Successfully registered with master)")
        yield url
    finally:
        for daemon in reversed(daemons):
            daemon.stop()


def test_a_pipeline_runs_on_a_cluster(
    master: str, broker: Broker, topics: Any, topic: str, tmp_path: Path
) -> None:
    for partition in range(2):
        topics.numbers(topic, partition * 50, partition * 50 + 50, partition)
    path = tmp_path / "pipeline.yaml"
    path.write_text(PIPELINE.format(topic=topic, bootstrap=broker.bootstrap))
    command = [PROGRAM, "pipeline", "run", path, "--once", "--master", master]
    command += ["--conf", "spark.executor.memory=512m", "--conf", "spark.driver.host=127.0.0.1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "100 rows read" in done.stdout
    rows = store_of(TableTarget(str(tmp_path / "tables" / "doubled"))).read()
    assert sorted(rows.column("number").to_pylist()) == list(range(0, 200, 2))
    # Both workers had executors.
    assert all(list((tmp_path / f"worker{number}-work").rglob("stderr")) for number in (1, 2))
