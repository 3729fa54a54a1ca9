"""Pipelines as projects for Spark Declarative Pipelines: what is written, and what cannot be."""

from pathlib import Path

import pytest
import yaml

from barnabas.spark.pipeline.exporting import ORIGIN_COLUMNS, ExportError, export, own_columns
from barnabas.spark.pipeline.loading import load

EXAMPLE = Path(__file__).parents[4] / "examples" / "orders" / "pipeline.yaml"
SINKS = """\
name: sinks
checkpoint: ./state
sources:
  orders: {topic: orders, decode: json, schema: id long}
sinks:
  - {from: orders, table: {path: ./t, mode: upsert, key: id}}
  - {from: orders, table: {path: "./{id}"}}
  - {from: orders, database: {url: "sqlite://", table: orders}}
  - {from: orders, topic: all, mode: complete}
"""


def test_the_example(tmp_path: Path) -> None:
    spec, module = export(load(EXAMPLE), EXAMPLE, tmp_path)
    assert spec == tmp_path / "spark-pipeline.yml"
    assert yaml.safe_load(spec.read_text()) == {
        "name": "orders",
        "storage": (EXAMPLE.parents[2] / "build/orders/checkpoints/spark-pipelines").as_uri(),
        "libraries": [{"glob": {"include": "transformations/**"}}],
    }
    text = module.read_text()
    compile(text, str(module), "exec")
    assert "FROM STREAM(orders) WHERE category <> 'closing'" in text
    assert "enrich(spark, clean=spark.readStream.table('clean'))" in text
    assert "frame.dropDuplicatesWithinWatermark(['order_id'])" in text
    for sink in ("undecodable_orders", "rejected_clean", "enriched_to_orders_enriched", "clean_to_orders"):
        assert f'@dp.append_flow(target="{sink}")' in text
    assert "'commitOffsets'" not in text, "several flows would share a group"
    assert module.stat().st_mode & 0o077 == 0, "settings may have passwords in them"


def test_the_columns_of_the_record_are_not_a_part_of_values(tmp_path: Path) -> None:
    path = tmp_path / "steps.yaml"
    path.write_text(
        "name: steps\ncheckpoint: ./state\n"
        "sources:\n  orders: {topic: orders, decode: json, schema: id long}\n"
        "steps:\n"
        "  - {name: all, sql: SELECT * FROM orders}\n"
        "  - {name: sums, sql: 'SELECT count(*) AS orders FROM orders'}\n"
        "  - {name: some, sql: 'SELECT id, _offset FROM orders'}\n"
        "sinks:\n  - {from: some, topic: some}\n  - {from: sums, topic: sums}\n"
    )
    pipeline = load(path)
    assert own_columns(pipeline) == {
        "orders": ORIGIN_COLUMNS,
        "all": ORIGIN_COLUMNS,
        "sums": (),
        "some": ("_offset",),
    }
    _, module = export(pipeline, path, tmp_path / "project")
    assert 'F.expr("to_json(struct(* EXCEPT (_offset)))")' in module.read_text()
    assert 'F.expr("to_json(struct(*))")' in module.read_text()


def test_what_a_project_cannot_do(tmp_path: Path) -> None:
    path = tmp_path / "sinks.yaml"
    path.write_text(SINKS)
    with pytest.raises(ExportError) as raised:
        export(load(path), path, tmp_path / "project")
    assert str(raised.value).splitlines() == [
        "The sink orders-to-t has mode upsert, but flows of a project only append.",
        "The sink orders-to-id chooses tables by a column, which a project cannot do.",
        "The sink orders-to-orders is no topic or table, which a project cannot write: remove it.",
        "The sink orders-to-all has mode complete, but flows of a project only append.",
    ]
    assert not (tmp_path / "project").exists()
