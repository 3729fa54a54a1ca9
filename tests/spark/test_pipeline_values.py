"""Values of every format as rows of a pipeline, on a real Spark: schemas that Spark understands, and the
changes of a database that become a table."""

import json
from pathlib import Path
from typing import Any

from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from pyspark.sql import SparkSession
from tests.spark.test_pipeline import quiet

from barnabas.spark.pipeline.deep_checks import check_with_spark
from barnabas.spark.pipeline.loading import load, load_with_lines
from barnabas.spark.pipeline.queries import Place
from barnabas.spark.pipeline.running import run
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": "string"}}},
    ],
}
KINDS = """\
name: kinds
bootstrap: {bootstrap}
checkpoint: ./state
sources:
  text: {{topic: orders, decode: csv, schema_file: order.ddl}}
  avro: {{topic: orders, decode: avro, schema_file: order.avsc}}
  times: {{topic: orders, decode: protobuf, schema_file: time.desc, message: google.protobuf.Timestamp}}
steps:
  - {{name: joined, sql_file: joined.sql}}
sinks:
  - {{from: joined, table: {{path: ./tables/joined}}}}
"""
CHANGES = """\
name: {topic}
bootstrap: {bootstrap}
checkpoint: ./state
sources:
  customers: {{topic: {topic}, decode: json, envelope: debezium, schema: "id long, name string"}}
sinks:
  - {{from: customers, table: {{path: ./tables/customers, mode: upsert, key: [id], order_by: _offset}}}}
"""


def test_spark_understands_the_schemas_of_all_formats(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    (tmp_path / "order.ddl").write_text("id long, -- the number\nname string -- of the buyer\n")
    (tmp_path / "order.avsc").write_text(json.dumps(AVRO, indent=1))
    files = FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    (tmp_path / "time.desc").write_bytes(files.SerializeToString())
    (tmp_path / "joined.sql").write_text(
        "SELECT text.id, name, lines, seconds\nFROM text\nJOIN avro USING (id)\nJOIN times ON"
        " times.seconds = id;\n"
    )
    path = tmp_path / "kinds.yaml"
    path.write_text(KINDS.format(bootstrap=broker.bootstrap))
    frame = Place(spark, load(path), tmp_path).frames("check")["joined"]
    assert frame.schema.simpleString() == (
        "struct<id:bigint,name:string,lines:array<map<string,string>>,seconds:bigint>"
    )
    (tmp_path / "joined.sql").write_text("SELECT id\nFROM text\nWHERE nothing = 1\n")
    loaded = load_with_lines(path)
    (problem,) = check_with_spark(spark, loaded.pipeline, path, loaded.lines)
    assert (problem.file, problem.line) == (str(tmp_path / "joined.sql"), 3)


def test_a_table_follows_the_table_of_a_database(
    spark: SparkSession, broker: Broker, topics: Any, topic: str, tmp_path: Path
) -> None:
    def change(op: str, before: Any, after: Any) -> bytes:
        return json.dumps({"payload": {"before": before, "after": after, "op": op}}).encode()

    ada, bob, eve = ({"id": number, "name": name} for number, name in enumerate(("Ada", "Bob", "Eve")))
    path = tmp_path / "changes.yaml"
    path.write_text(CHANGES.format(topic=topic, bootstrap=broker.bootstrap))
    table = store_of(TableTarget(str(tmp_path / "tables" / "customers")))

    def names() -> list[str]:
        run(spark, load(path), tmp_path, once=True, watch=quiet)
        return sorted(table.read().column("name").to_pylist())

    topics.put(topic, [change("r", None, ada), change("c", None, bob), change("c", None, eve)])
    assert names() == ["Ada", "Bob", "Eve"]
    renamed = {**ada, "name": "Ada L."}
    topics.put(topic, [change("d", bob, None), None, change("u", ada, renamed)])
    assert names() == ["Ada L.", "Eve"]
