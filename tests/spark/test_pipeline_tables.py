"""Pipelines on a real Spark that read tables and databases and write to databases, functions, and tables
that a column chooses."""

import json
from pathlib import Path
from typing import Any

import pyarrow
import sqlalchemy
from pyspark.sql import SparkSession
from tests.spark.test_pipeline import quiet
from tests.unit.spark.tables.filling import append

from barnabas.spark.pipeline.loading import load
from barnabas.spark.pipeline.maintaining import tables_of
from barnabas.spark.pipeline.running import run
from barnabas.spark.pipeline.table_sources import table_frame
from barnabas.spark.tables.origin import TableOrigin
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import Mark, TableTarget
from barnabas.testing import Broker

SHOP = """\
name: {topic}
bootstrap: {bootstrap}
checkpoint: ./state
sources:
  orders: {{topic: {topic}, decode: json, schema: "id long, customer long, item string"}}
tables:
  customers: {{path: ./customers}}
  prices: {{url: "sqlite:///{directory}/shop.db", table: prices}}
steps:
  - name: priced
    sql: >
      SELECT orders.id, customers.name, item, price
      FROM orders LEFT JOIN customers ON customers.id = customer LEFT JOIN prices USING (item)
sinks:
  - {{from: priced, database: {{url: "sqlite:///{directory}/shop.db", table: orders}}}}
  - {{from: orders, table: {{path: "./tables/{{item}}"}}}}
  - {{from: priced, python: "noting:note"}}
"""
NOTING = """\
from pathlib import Path


def note(frame, batch):
    with (Path(__file__).parent / "notes").open("a") as notes:
        notes.writelines(f"{batch} {row.id}\\n" for row in frame.collect())
"""


def customers(batch: int, **names: int) -> pyarrow.Table:
    return pyarrow.table({"id": list(names.values()), "name": list(names)})


def test_a_shop(spark: SparkSession, broker: Broker, topics: Any, topic: str, tmp_path: Path) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE prices (item TEXT, price REAL)")
        connection.exec_driver_sql("INSERT INTO prices VALUES ('tea', 3.5), ('milk', 1.5)")
        connection.exec_driver_sql("CREATE TABLE orders (id INTEGER, name TEXT, item TEXT, price REAL)")
    append(TableTarget(str(tmp_path / "customers")), customers(0, Ada=1), Mark("q", 0))
    (tmp_path / "noting.py").write_text(NOTING)
    path = tmp_path / "shop.yaml"
    path.write_text(SHOP.format(topic=topic, bootstrap=broker.bootstrap, directory=tmp_path))
    pipeline = load(path)

    def order(id_: int, customer: int, item: str) -> bytes:
        return json.dumps({"id": id_, "customer": customer, "item": item}).encode()

    topics.put(topic, [order(1, 1, "tea"), order(2, 2, "milk"), order(3, 1, "cake / pie")])
    run(spark, pipeline, tmp_path, once=True, watch=quiet)
    append(TableTarget(str(tmp_path / "customers")), customers(1, Bob=2), Mark("q", 1))
    topics.put(topic, [order(4, 2, "tea")])
    run(spark, pipeline, tmp_path, once=True, watch=quiet)

    with engine.connect() as connection:
        rows = [tuple(row) for row in connection.exec_driver_sql("SELECT * FROM orders ORDER BY id")]
    engine.dispose()
    assert rows == [
        (1, "Ada", "tea", 3.5),
        (2, None, "milk", 1.5),
        (3, "Ada", "cake / pie", None),
        (4, "Bob", "tea", 3.5),
    ]
    ids = {
        folder: sorted(
            store_of(TableTarget(str(tmp_path / "tables" / folder))).read().column("id").to_pylist()
        )
        for folder in ("tea", "milk", "cake~20~2F~20pie")
    }
    assert ids == {"tea": [1, 4], "milk": [2], "cake~20~2F~20pie": [3]}
    assert len(tables_of(pipeline, tmp_path)) == 3
    notes = [line.split() for line in (tmp_path / "notes").read_text().splitlines()]
    assert sorted(int(number) for _, number in notes) == [1, 2, 3, 4]


def test_a_database_with_a_driver_for_java(spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT * FROM (VALUES (1, 2.5), (2, 0.5)) AS rates (customer, rate)"
    origin = TableOrigin(url="jdbc:derby:memory:rates;create=true", query=query)
    rows = table_frame(spark, origin, tmp_path).collect()
    assert sorted((row.CUSTOMER, float(row.RATE)) for row in rows) == [(1, 2.5), (2, 0.5)]
