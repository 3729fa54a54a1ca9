"""Pipelines on a real Spark: files that run, rows that are quarantined, runs that go on where they
stopped."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.writing import committed_records

from barnabas.cli.main import main
from barnabas.spark.pipeline.deep_checks import check_with_spark
from barnabas.spark.pipeline.loading import load, load_with_lines
from barnabas.spark.pipeline.progress import QueryProgress
from barnabas.spark.pipeline.replaying import replay
from barnabas.spark.pipeline.running import QueryFailed, run
from barnabas.spark.pipeline.status import status_of
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker

WHOLE = """\
name: {topic}
bootstrap: {bootstrap}
checkpoint: ./state
dead_letters: {topic}-dead
sources:
  orders:
    topic: {topic}
    decode: json
    schema: "id long, amount double, at timestamp"
    bad_records: quarantine
    watermark: {{column: at, delay: 1 hour}}
    dedupe: [id]
steps:
  - {{name: priced, python: "pricing:price", from: [orders]}}
  - name: sums
    sql: >
      SELECT window.start AS start, sum(amount) AS total
      FROM priced GROUP BY window(at, '1 hour')
quality:
  priced:
    - {{name: positive, check: "amount > 0"}}
    - {{name: small, check: "amount < 1000", action: drop}}
sinks:
  - {{from: priced, topic: {topic}-out, key: id}}
  - {{from: priced, table: {{path: ./tables/priced}}}}
  - {{from: sums, table: {{path: ./tables/sums}}}}
"""
PRICING = """\
from pyspark.sql import functions as F


def price(spark, orders):
    price = F.col("amount").alias("price")
    return orders.select("id", "amount", "at", price, "_topic", "_partition", "_offset")
"""


def order(number: int, amount: float, hour: int = 9) -> bytes:
    return json.dumps({"id": number, "amount": amount, "at": f"2026-01-05T{hour:02}:00:00Z"}).encode()


@pytest.fixture
def write(broker: Broker, topics: Any, tmp_path: Path) -> Callable[[str], tuple[Path, str]]:
    """Write a pipeline's file for a new topic."""

    def write(text: str) -> tuple[Path, str]:
        topic = f"p-{uuid.uuid4().hex[:10]}"
        for name in (topic, f"{topic}-out", f"{topic}-dead"):
            topics.make(name)
        (tmp_path / "pricing.py").write_text(PRICING)
        path = tmp_path / "pipeline.yaml"
        path.write_text(text.format(topic=topic, bootstrap=broker.bootstrap))
        return path, topic

    return write


def quiet(_: list[QueryProgress]) -> None:
    return None


def test_a_whole_pipeline_over_two_runs(
    spark: SparkSession, broker: Broker, topics: Any, write: Callable[[str], tuple[Path, str]], tmp_path: Path
) -> None:
    path, topic = write(WHOLE)
    pipeline = load(path)
    topics.put(topic, [order(1, 10.0), order(2, 20.0), order(1, 10.0), b"{no json", order(3, -1.0)])
    run(spark, pipeline, tmp_path, once=True, watch=quiet)
    topics.put(topic, [order(4, 5.0), order(5, 5000.0), b"neither", order(6, 1.0, hour=20)])
    done = run(spark, pipeline, tmp_path, once=True, watch=quiet)

    assert {each.state for each in done} == {"done"}
    rows = store_of(TableTarget(str(tmp_path / "tables" / "priced"))).read().to_pylist()
    assert sorted(row["id"] for row in rows) == [1, 2, 4, 6]
    out = committed_records(broker.bootstrap, f"{topic}-out")
    assert sorted((record.key, json.loads(record.value)["price"]) for record in out) == [
        (b"1", 10.0),
        (b"2", 20.0),
        (b"4", 5.0),
        (b"6", 1.0),
    ]
    sums = store_of(TableTarget(str(tmp_path / "tables" / "sums"))).read().to_pylist()
    assert [row["total"] for row in sums] == [35.0]

    letters = {
        record.value: dict(record.headers) for record in committed_records(broker.bootstrap, f"{topic}-dead")
    }
    assert len(letters) == 3
    bad = letters[b"{no json"]
    assert (bad["barnabas.step"], bad["barnabas.topic"]) == (b"orders", topic.encode())
    (rejected,) = [headers for value, headers in letters.items() if value.startswith(b'{"id":3')]
    assert (rejected["barnabas.error"], rejected["barnabas.step"]) == (b"positive", b"priced")

    entries, dead_letters, problem = status_of(pipeline, tmp_path)
    assert (dead_letters, problem) == (3, None)
    status = {each.query: each for each in entries}
    assert list(status) == ["orders", "sums-to-sums"]
    assert status["orders"].lag == 0
    assert status["orders"].batches >= 2
    assert status["orders"].rows_per_second is not None, "the last batch says how fast it was"

    replayed = replay(pipeline, dry_run=True)
    assert replayed.sent == {topic: 3}
    assert replay(pipeline, step="orders").sent == {topic: 2}
    assert replay(pipeline).sent == {}
    replayed = [record for record in committed_records(broker.bootstrap, topic) if dict(record.headers)]
    assert sorted(record.value for record in replayed) == [b"neither", b"{no json"]


def test_a_rule_that_must_not_fail_ends_the_pipeline(
    spark: SparkSession, topics: Any, write: Callable[[str], tuple[Path, str]], tmp_path: Path
) -> None:
    path, topic = write(
        "name: {topic}\nbootstrap: {bootstrap}\ncheckpoint: ./state\n"
        "sources:\n  orders: {{topic: {topic}, decode: json, schema: 'id long'}}\n"
        "quality:\n  orders: [{{name: known, check: id > 0, action: fail}}]\n"
        "sinks:\n  - {{from: orders, table: {{path: ./tables/orders}}}}\n"
    )
    topics.put(topic, [b'{"id": 0}'])
    with pytest.raises(QueryFailed, match="rule 'known'"):
        run(spark, load(path), tmp_path, once=True, watch=quiet)
    (failed,) = status_of(load(path), tmp_path).queries
    assert failed.error is not None, "the status says why"
    assert "rule 'known'" in failed.error
    assert "\n" not in failed.error
    path.write_text(path.read_text().replace("action: fail", "action: drop"))
    run(spark, load(path), tmp_path, once=True, watch=quiet)
    assert [each.error for each in status_of(load(path), tmp_path).queries] == [None]


def test_spark_finds_what_a_file_does_not_show(
    spark: SparkSession, write: Callable[[str], tuple[Path, str]], tmp_path: Path
) -> None:
    """Several mistakes at once, with the lines of SQL and of rules."""

    def problems_of(text: str) -> list[tuple[list[str], str]]:
        path, _ = write(text)
        pipeline, lines = load_with_lines(path)
        texts = path.read_text().splitlines()
        problems = check_with_spark(spark, pipeline, path, lines)
        return [(texts[(problem.line or 0) - 1].split(), problem.sentence) for problem in problems]

    ((line, sentence),) = problems_of(WHOLE.replace("sum(amount)", "sum(amont)"))
    assert line[:2] == ["SELECT", "window.start"]
    assert sentence.startswith("Step sums: A column, variable, or function parameter with name `amont`")
    rule, sink = problems_of(
        WHOLE.replace("key: id", "key: number").replace("amount < 1000", "amount < < 1000")
    )
    assert rule[0][:3] == ["-", "{name:", "small,"]
    assert rule[1] == "The rule 'small' of priced: Syntax error at or near '<'. (in: amount < < 1000)"
    assert sink[0][:3] == ["-", "{from:", "priced,"]
    assert sink[1].endswith(
        "-out is the column number, which priced does not have; it must be one of id, amount, at, price,"
        " _topic, _partition, _offset."
    )

    ((line, sentence),) = problems_of(
        WHOLE.replace("FROM priced GROUP BY window(at, '1 hour')", "FROM priced").replace(
            "window.start AS", "1 AS"
        )
    )
    assert line[:3] == ["-", "{from:", "sums,"]
    assert sentence == (
        "The sink sums-to-sums: Invalid streaming output mode: append. This output mode is not supported for"
        " streaming aggregations without watermark on streaming DataFrames/DataSets. Group by a window of the"
        " column with the watermark, or set mode: upsert and a key of the table."
    )


def test_progress_is_shown_after_each_batch(
    spark: SparkSession, topics: Any, write: Callable[[str], tuple[Path, str]], tmp_path: Path
) -> None:
    path, topic = write(
        "name: {topic}\nbootstrap: {bootstrap}\ncheckpoint: ./state\n"
        "sources:\n  orders:\n    topic: {topic}\n    decode: json\n    schema: 'id long'\n"
        "    options: {{maxBytesPerTrigger: 4k}}\n"
        "sinks:\n  - {{from: orders, table: {{path: ./tables/orders}}}}\n"
    )
    for first in range(0, 600, 100):
        topics.put(topic, [json.dumps({"id": number}).encode() for number in range(first, first + 100)])
    seen: list[tuple[int, int | None]] = []
    (done,) = run(
        spark,
        load(path),
        tmp_path,
        once=True,
        watch=lambda progress: seen.append((progress[0].rows, progress[0].lag_total)),
    )
    assert (done.rows, done.lag_total, done.state) == (600, 0, "done")
    assert done.batches > 1
    assert done.bytes is not None and done.bytes > 600
    assert seen[0] == (0, None)
    assert all((rows > 0) == (lag is not None) for rows, lag in seen)
    assert all(rows + lag == 600 for rows, lag in seen if lag is not None)


def test_a_run_that_cannot_be_planned_names_the_line(
    spark: SparkSession, write: Callable[[str], tuple[Path, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = write(WHOLE.replace("sum(amount)", "sum(amont)"))
    assert main(["pipeline", "run", str(path), "--once"]) == 1
    *_, mistake, end = capsys.readouterr().err.splitlines()
    (line,) = (number for number, text in enumerate(path.read_text().splitlines(), 1) if "amont" in text)
    assert mistake.startswith(f"{path}:{line}: Step sums: A column, variable, or function parameter")
    assert end == f"Error: {path} has 1 mistake; nothing was started."
