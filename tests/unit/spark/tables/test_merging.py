"""When MERGE INTO is used, and its statement. The statements run only in sessions with jars that are not on
PyPI, so here they are compared as texts."""

from dataclasses import replace

import pyarrow
import pytest

from barnabas.spark.tables.fitting import fitting_of
from barnabas.spark.tables.merging import EXTENSIONS, mark_settings, merge_name, merge_statements
from barnabas.spark.tables.target import Mark, TableTarget

DELTA = TableTarget("/data/it`s", mode="upsert", key=("id",))
ICEBERG = TableTarget("/data/orders/", format="iceberg", mode="upsert", key=("id",))
BOTH = f"org.example.Other, {EXTENSIONS['delta']},{EXTENSIONS['iceberg']}"


@pytest.mark.parametrize(
    "target, settings, expected",
    [
        (DELTA, {}, None),
        (DELTA, {"spark.sql.extensions": EXTENSIONS["iceberg"]}, None),
        (DELTA, {"spark.sql.extensions": BOTH}, "delta.`/data/it``s`"),
        (ICEBERG, {"spark.sql.extensions": BOTH}, None),
        (
            ICEBERG,
            {"spark.sql.extensions": BOTH, "spark.sql.catalog.barnabas": "org.apache.iceberg.SparkCatalog"},
            "barnabas.barnabas.`orders`",
        ),
        (
            replace(ICEBERG, path="shop.orders", catalog=(("type", "rest"),)),
            {"spark.sql.extensions": BOTH, "spark.sql.catalog.barnabas": "org.apache.iceberg.SparkCatalog"},
            None,
        ),
    ],
)
def test_when_a_session_can_merge(
    target: TableTarget, settings: dict[str, str], expected: str | None
) -> None:
    assert merge_name(lambda name: settings.get(name, ""), target) == expected


def test_the_statement() -> None:
    schema = pyarrow.schema([("id", pyarrow.int64()), ("part", pyarrow.int64()), ("what", pyarrow.string())])
    fitting = fitting_of(None, schema, evolve=True)
    assert merge_statements("t", replace(DELTA, key=("id", "part")), fitting) == [
        "MERGE INTO t AS target USING barnabas_upsert AS source"
        " ON target.`id` <=> source.`id` AND target.`part` <=> source.`part`"
        " WHEN MATCHED AND source._deleted THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET target.`id` = source.`id`, target.`part` = source.`part`,"
        " target.`what` = source.`what`"
        " WHEN NOT MATCHED AND NOT source._deleted THEN INSERT (`id`, `part`, `what`)"
        " VALUES (source.`id`, source.`part`, source.`what`)"
    ]


def test_iceberg_looks_at_the_table_again() -> None:
    """Its catalog in Spark keeps tables for a while, and then does not know a column that was just added."""
    fitting = fitting_of(None, pyarrow.schema([("id", pyarrow.int64())]), evolve=True)
    first, second = merge_statements("t", ICEBERG, fitting)
    assert first == "REFRESH TABLE t"
    assert second.startswith("MERGE INTO t ")


def test_the_mark_is_part_of_the_commit() -> None:
    assert mark_settings("delta", Mark("query", 7)) == {
        "spark.databricks.delta.write.txnAppId": "query",
        "spark.databricks.delta.write.txnVersion": "7",
    }
    assert mark_settings("iceberg", Mark("query", 7)) == {
        "spark.sql.iceberg.snapshot-property.barnabas.batch.query": "7"
    }
