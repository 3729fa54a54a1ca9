"""The example project for Spark Declarative Pipelines runs, and goes on where it stopped."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.topics import Topics
from tests.spark.writing import committed_records

from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker

EXAMPLE = Path(__file__).parents[2] / "examples" / "declarative"
STORAGE = "file:///tmp/barnabas-declarative/storage"
LATE = "failed to connect back"
STARTS_MAX = 5


def run(project: Path, environment: dict[str, str]) -> None:
    """A run that failed because the machine was busy is tried again: it goes on from its checkpoints."""
    command = [
        str(Path(sys.executable).parent / "spark-pipelines"),
        *("run", "--spec", str(project / "spark-pipeline.yml")),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"),
    ]
    for attempt in range(1, STARTS_MAX + 1):
        done = subprocess.run(
            command, env=environment, cwd=project, capture_output=True, text=True, check=False
        )
        printed = done.stdout + done.stderr
        if done.returncode == 0:
            return
        assert LATE in printed and attempt < STARTS_MAX, printed[-5000:]


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Other tests use the same names of topics."""
    with Broker(subprocess=True) as broker:
        yield broker


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_example_project(broker: Broker, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE, project)
    spec = project / "spark-pipeline.yml"
    assert STORAGE in spec.read_text()
    spec.write_text(spec.read_text().replace(STORAGE, (tmp_path / "storage").as_uri()))
    table = tmp_path / "orders"
    environment = {
        **os.environ,
        "BARNABAS_BOOTSTRAP": broker.bootstrap,
        "ORDERS_TABLE": str(table),
        "PYSPARK_PYTHON": str(Path(sys.executable).parent / "barnabas-python"),
    }
    with Topics(broker.bootstrap) as topics:
        for name in ("orders", "large-orders"):
            topics.make(name)
        for numbers in (range(3), range(3, 5)):
            orders = [{"id": number, "category": "tea", "amount": 4.0 * number} for number in numbers]
            topics.put("orders", [json.dumps(order).encode() for order in orders])
            run(project, environment)
    ids = store_of(TableTarget(str(table))).read().column("id").to_pylist()
    assert sorted(ids) == [0, 1, 2, 3, 4]
    large = committed_records(broker.bootstrap, "large-orders")
    assert sorted(record.key for record in large) == [b"3", b"4"]
