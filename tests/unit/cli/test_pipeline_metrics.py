"""The metrics that a running pipeline serves."""

import re
import urllib.request
from pathlib import Path

from barnabas.cli.pipeline_metrics import collect, served_metrics
from barnabas.spark.pipeline.definition import Pipeline
from barnabas.spark.pipeline.progress import PROCESSING, QueryProgress

PIPELINE = Pipeline("shop", "localhost:9092", "./state", sources={}, sinks=())
GUIDE = Path(__file__).parents[3] / "docs" / "monitoring.md"


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
