"""A pipeline on a real standalone cluster: one master and two workers, started by PySpark's own script."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from tests.clients.broker_process import PROGRAM

from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
PATIENCE_SECONDS = 120.0
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


class Daemon:
    """A process of Spark's, known by its log."""

    def __init__(self, folder: Path, name: str, *arguments: str) -> None:
        self._log = folder / f"{name}.log"
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_WORKER_DIR": str(folder / f"{name}-work"),
            "PYSPARK_PYTHON": sys.executable,
        }
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [SPARK_CLASS, *arguments],
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )

    def said(self, pattern: str) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            text = self._log.read_text(errors="replace")
            found = re.search(pattern, text)
            if found:
                return found[1]
            assert self._process.poll() is None, text[-3000:]
            time.sleep(0.2)
        raise AssertionError(f"{self._log.name} never said {pattern}:\n{self._log.read_text()[-3000:]}")

    def stop(self) -> None:
        # The script starts Java as its child: both are in a group of their own.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """spark://host:port of a master with two workers."""
    daemons = [Daemon(tmp_path, "master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1")]
    try:
        url = daemons[0].said(r"Starting Spark master at (spark://\S+)")
        for name in ("worker1", "worker2"):
            kind = "org.apache.spark.deploy.worker.Worker"
            limits = ("--cores", "1", "--memory", "700m", "--webui-port", "0", "--host", "127.0.0.1")
            daemons.append(Daemon(tmp_path, name, kind, *limits, url))
        for worker in daemons[1:]:
            worker.said(r"(Successfully registered with master)")
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
    # Both workers had executors of their own.
    assert all(list((tmp_path / f"worker{number}-work").rglob("stderr")) for number in (1, 2))
