"""The pipeline of docs/pipelines.md runs as it is written there."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from barnabas.cli.main import main
from barnabas.spark.pipeline.loading import load
from barnabas.spark.pipeline.running import run
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker

PAGE = Path(__file__).parents[2] / "docs" / "pipelines.md"
TEXT = PAGE.read_text()
(EXAMPLE,) = re.findall(r"<!-- example: pipeline -->\n```yaml\n(.*?)```", TEXT, re.DOTALL)
(READ,) = re.findall(r"<!-- example: read -->\n```python\n(.*?)```", TEXT, re.DOTALL)
(MAINTAIN,) = re.findall(r"<!-- example: maintain -->\n```sh\nbarnabas (.*?)\n```", TEXT)


def both_partitions(topics: Any, topic: str) -> list[Any]:
    return [record for partition in range(2) for record in topics.records(topic, partition)]


def test_the_example(
    spark: SparkSession,
    broker: Broker,
    topics: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", broker.bootstrap)
    for name in ("orders", "large-orders", "orders-dead-letters"):
        topics.make(name)
    path = tmp_path / "orders.yaml"
    path.write_text(EXAMPLE)
    orders = [
        {"id": number, "category": "tea", "amount": 4.0 * number, "at": "2026-01-05T09:00:00Z"}
        for number in range(5)
    ]
    topics.put("orders", [json.dumps(order).encode() for order in orders])
    run(spark, load(path), tmp_path, once=True, watch=lambda progress: None)
    table = store_of(TableTarget(str(tmp_path / "tables" / "orders")))
    assert sorted(table.read().column("id").to_pylist()) == [1, 2, 3, 4]
    assert [len(both_partitions(topics, name)) for name in ("large-orders", "orders-dead-letters")] == [2, 1]
    monkeypatch.chdir(tmp_path)
    done = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "4\n", "")
    assert main(shlex.split(MAINTAIN)) == 0
    printed = [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]]
    assert printed == [["orders", "delta"], ["revenue", "iceberg"]]
    assert sorted(table.read().column("id").to_pylist()) == [1, 2, 3, 4]
