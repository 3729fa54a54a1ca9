"""The metrics that a running pipeline serves."""

import asyncio
import json
import math
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.support.promql import Evaluation, Scrape

from barnabas.broker.metrics import exposition
from barnabas.cli.pipeline_metrics import collect, served_metrics
from barnabas.spark.pipeline.definition import Pipeline
from barnabas.spark.pipeline.progress import FAILED, PROCESSING, QueryProgress

PIPELINE = Pipeline("shop", "localhost:9092", "./state", sources={}, sinks=())
GUIDE = Path(__file__).parents[3] / "docs" / "monitoring.md"
DASHBOARD: dict[str, Any] = json.loads((GUIDE.parent / "grafana-pipelines.json").read_text())
QUERIES = [
    (panel["title"], target["expr"], target["legendFormat"])
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", [])
]


def scrape(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return str(answer.read().decode())


def test_what_is_served(tmp_path: Path) -> None:
    with served_metrics(PIPELINE, tmp_path, "127.0.0.1", 0) as served:
        assert "barnabas_pipeline_rows_total{" not in scrape(served.address)
        query = QueryProgress("copies")
        served.progress[:] = [query]
        before = scrape(served.address)
        query.rows, query.batches, query.batch_ms, query.bytes = 3_000, 2, 500, 90_000
        query.lag, query.rows_per_second, query.state = {"orders": 1_200}, 600.0, PROCESSING
        query.last_batch_time = 1_700_000_000.0
        text = scrape(served.address)
        page = scrape(served.address.removesuffix("metrics"))
    labels = 'pipeline="shop",query="copies"'
    assert f"barnabas_pipeline_rows_total{{{labels}}} 0\n" in before
    assert "barnabas_pipeline_lag{" not in before
    assert f"barnabas_pipeline_rows_total{{{labels}}} 3000\n" in text
    assert f'barnabas_pipeline_lag{{{labels},topic="orders"}} 1200\n' in text
    assert f"barnabas_pipeline_behind_seconds{{{labels}}} 2.0\n" in text
    assert f'barnabas_pipeline_state{{{labels},state="processing"}} 1\n' in text
    assert f'barnabas_pipeline_state{{{labels},state="failed"}} 0\n' in text
    assert "<h1>Pipeline shop</h1>" in page
    named = set(re.findall(r"\b(barnabas_pipeline_\w+)", GUIDE.read_text()))
    assert len(named) > 8
    collected = {family.name + suffix for family in collect("shop", [query], 3) for suffix in ("", "_total")}
    assert named <= collected


def test_the_health_of_a_pipeline(tmp_path: Path) -> None:
    with served_metrics(PIPELINE, tmp_path, "127.0.0.1", 0) as served:
        health = served.address.replace("/metrics", "/health")
        query = QueryProgress("copies")
        query.state = PROCESSING
        served.progress[:] = [query]
        assert json.loads(scrape(health)) == {"status": "ok", "checks": {"copies": "processing"}}
        query.state = FAILED
        with pytest.raises(urllib.error.HTTPError, match="503") as caught:
            scrape(health)
        caught.value.close()


async def written(rows: int, seconds: float) -> Scrape:
    query = QueryProgress("copies")
    query.rows, query.batches, query.batch_ms, query.bytes = rows, rows, 500, rows
    query.lag, query.rows_per_second, query.state = {"orders": 1_200}, 600.0, PROCESSING
    query.last_batch_time = 1_700_000_000.0
    text = await exposition.write(collect("shop", [query], rows), open_metrics=False, gzip=False)
    return Scrape(text.decode(), seconds, job="pipelines", instance="127.0.0.1:9405")


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return Evaluation(asyncio.run(written(100, 0.0)), asyncio.run(written(700, 60.0)))


@pytest.mark.parametrize(("title", "expression", "legend"), QUERIES, ids=[query[0] for query in QUERIES])
def test_a_query_of_the_dashboard(evaluation: Evaluation, title: str, expression: str, legend: str) -> None:
    for name, value in {"$job": "pipelines", "$pipeline": "shop", "$__rate_interval": "1m"}.items():
        expression = expression.replace(name, value)
    result = evaluation.run(expression)
    assert any(math.isfinite(value) for value in result.values()), title
    named = set(re.findall(r"\{\{(\w+)\}\}", legend))
    assert all(named <= {name for name, _ in labels} for labels in result)
