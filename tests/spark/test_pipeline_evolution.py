"""A topic whose values change: new fields become columns of all kinds of tables when the schema has them, and
values of another type are quarantined, widened, or written to another column."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.spark.test_pipeline import quiet
from tests.spark.writing import committed_records

from barnabas.spark.pipeline.loading import load
from barnabas.spark.pipeline.running import run
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker

LARGE = 1 << 40
FORMATS = ("delta", "iceberg", "parquet")
PIPELINE = """\
name: {topic}
bootstrap: {bootstrap}
checkpoint: ./state
dead_letters: {topic}-dead
sources:
  orders: {{topic: {topic}, decode: json, schema_file: order.ddl, bad_records: quarantine}}
sinks:
  - {{from: orders, table: {{path: ./tables/of-delta, format: delta}}}}
  - {{from: orders, table: {{path: ./tables/of-iceberg, format: iceberg}}}}
  - {{from: orders, table: {{path: ./tables/of-parquet, format: parquet}}}}
"""


def test_a_topic_whose_values_change(
    spark: SparkSession, broker: Broker, topics: Any, topic: str, tmp_path: Path
) -> None:
    letters = topics.make(f"{topic}-dead")
    path = tmp_path / "orders.yaml"
    path.write_text(PIPELINE.format(topic=topic, bootstrap=broker.bootstrap))

    def process(schema: str, *orders: dict[str, Any]) -> None:
        (tmp_path / "order.ddl").write_text(schema)
        topics.put(topic, [json.dumps(order).encode() for order in orders])
        run(spark, load(path), tmp_path, once=True, watch=quiet)

    # 7.5 is no integer, and there is no column for the note yet.
    first = ({"id": 1, "amount": 5, "count": 1}, {"id": 2, "amount": 7.5}, {"id": 3, "note": "x"})
    process("id long, amount int, count int", *first)
    last = {"id": 4, "amount": 7.5, "note": "y", "count": LARGE}
    process("id int, amount double, count long, note string", last)

    assert [json.loads(record.value)["id"] for record in committed_records(broker.bootstrap, letters)] == [2]
    for format_ in FORMATS:
        table = store_of(TableTarget(str(tmp_path / "tables" / f"of-{format_}"), format=format_)).read()
        assert str(table.schema.field("id").type) == "int64"
        names = ("id", "amount", "amount__double", "note")
        rows = sorted(tuple(row[name] for name in names) for row in table.to_pylist())
        assert rows == [(1, 5, None, None), (3, None, None, None), (4, None, 7.5, "y")], format_
        # Only Iceberg can widen a column of a table that has rows.
        widened = "count" if format_ == "iceberg" else "count__int64"
        assert ("count__int64" in table.column_names) == (format_ != "iceberg")
        counts = {row["id"]: (row["count"], row[widened]) for row in table.to_pylist()}
        assert counts[1][0] == 1
        assert counts[4][1] == LARGE
