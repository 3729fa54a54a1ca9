"""The example project for Spark Declarative Pipelines, and one that was written from the file of a pipeline:
both run, and go on where they stopped."""

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

from barnabas.spark.pipeline.exporting import export
from barnabas.spark.pipeline.loading import load
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker

EXAMPLE = Path(__file__).parents[2] / "examples" / "declarative"
STORAGE = "file:///tmp/barnabas-declarative/storage"
LATE = "failed to connect back"
STARTS_MAX = 5
PIPELINE = """\
name: exported
bootstrap: {bootstrap}
checkpoint: ./state
dead_letters: dead
sources:
  orders:
    topic: orders
    decode: json
    schema: "id long, category string, amount double"
    bad_records: quarantine
steps:
  - {{name: doubled, python: "doubling:doubled", from: [orders]}}
  - {{name: large, sql: "SELECT id, twice FROM doubled WHERE twice > 15"}}
quality:
  orders:
    - {{name: known, check: "category <> ''"}}
sinks:
  - {{from: large, topic: large-orders, key: id}}
  - {{from: orders, table: {{path: ./orders}}}}
"""
DOUBLING = """\
from pyspark.sql import functions as F


def doubled(spark, orders):
    return orders.select("id", (F.col("amount") * 2).alias("twice"))
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYSPARK_PYTHON": str(Path(sys.executable).parent / "barnabas-python")}


def run(project: Path, variables: dict[str, str]) -> None:
    """A run that failed because the machine was busy is tried again: it goes on from its checkpoints."""
    command = [
        str(Path(sys.executable).parent / "spark-pipelines"),
        *("run", "--spec", str(project / "spark-pipeline.yml")),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"),
    ]
    for attempt in range(1, STARTS_MAX + 1):
        done = subprocess.run(
            command, env=variables, cwd=project, capture_output=True, text=True, check=False
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
    variables = {**environment(), "BARNABAS_BOOTSTRAP": broker.bootstrap, "ORDERS_TABLE": str(table)}
    with Topics(broker.bootstrap) as topics:
        for name in ("orders", "large-orders"):
            topics.make(name)
        for numbers in (range(3), range(3, 5)):
            orders = [{"id": number, "category": "tea", "amount": 4.0 * number} for number in numbers]
            topics.put("orders", [json.dumps(order).encode() for order in orders])
            run(project, variables)
    ids = store_of(TableTarget(str(table))).read().column("id").to_pylist()
    assert sorted(ids) == [0, 1, 2, 3, 4]
    large = committed_records(broker.bootstrap, "large-orders")
    assert sorted(record.key for record in large) == [b"3", b"4"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_an_exported_pipeline(broker: Broker, tmp_path: Path) -> None:
    file, project = tmp_path / "pipeline.yaml", tmp_path / "project"
    file.write_text(PIPELINE.format(bootstrap=broker.bootstrap))
    (tmp_path / "doubling.py").write_text(DOUBLING)
    export(load(file), file, project)
    with Topics(broker.bootstrap) as topics:
        for name in ("orders", "large-orders", "dead"):
            topics.make(name)
        for numbers in (range(3), range(3, 5)):
            orders = [{"id": number, "category": "tea", "amount": 4.0 * number} for number in numbers]
            orders.append({"id": 90 + len(numbers), "category": "", "amount": 1.0})
            bad = b"bad %d" % len(numbers)
            topics.put("orders", [*(json.dumps(order).encode() for order in orders), bad])
            run(project, environment())
    ids = store_of(TableTarget(str(tmp_path / "orders"))).read().column("id").to_pylist()
    assert sorted(ids) == [0, 1, 2, 3, 4]
    large = committed_records(broker.bootstrap, "large-orders")
    values = [(record.key, json.loads(record.value)) for record in large]
    assert sorted(values) == [(b"%d" % number, {"id": number, "twice": 8.0 * number}) for number in (2, 3, 4)]
    letters = committed_records(broker.bootstrap, "dead")
    assert {dict(each.headers)["barnabas.step"] for each in letters} == {b"orders"}
    dead = sorted(each.value for each in letters)
    assert dead[:2] == [b"bad 2", b"bad 3"]
    assert [json.loads(value)["id"] for value in dead[2:]] == [92, 93]
