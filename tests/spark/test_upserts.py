"""Upserts in Spark's tasks, next to those on the driver: the same rows come out."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from barnabas.spark.tables import upsert_tasks, upserting
from barnabas.spark.tables.store import maintain, store_of
from barnabas.spark.tables.target import Mark, TableTarget
from barnabas.spark.tables.writing import upsert

AT = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = "id long, what string, at timestamp, place struct<city:string>, _deleted boolean"


def batch(spark: SparkSession, *rows: tuple[int | None, str, int, bool | None]) -> DataFrame:
    """Rows: id, what, hour, whether it is deleted."""
    full = [(id_, what, AT.replace(hour=hour), (f"city {id_}",), gone) for id_, what, hour, gone in rows]
    return spark.createDataFrame(full, COLUMNS)


def run(spark: SparkSession, target: TableTarget) -> list[tuple[object, object, object]]:
    first = batch(spark, *[(number, "first", 1, None) for number in range(20)], (None, "null", 1, None))
    upsert(first, target, Mark("query", 0))
    changed = batch(
        spark,
        (3, "late", 2, False),
        (3, "later", 3, False),
        (3, "early", 1, True),
        (4, "gone", 2, True),
        (99, "never there", 2, True),
        (30, "new", 2, None),
        (None, "null again", 2, None),
    )
    upsert(changed, target, Mark("query", 1))
    # Spark runs the batch again.
    upsert(changed.withColumn("what", F.lit("twice")), target, Mark("query", 1))
    # A column that the table has and the batch has not.
    upsert(changed.drop("place", "_deleted").filter("id = 30"), target, Mark("query", 2))
    rows = store_of(target).read().to_pylist()
    return sorted(((row["id"], row["what"], row["place"]["city"]) for row in rows), key=str)


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_tasks_write_what_the_driver_writes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    shape = {"format": format_, "mode": "upsert", "key": ("id",), "order_by": "at"}
    here = run(spark, TableTarget(str(tmp_path / "here"), partition_by=("what",), **shape))
    monkeypatch.setattr(upserting, "ROWS_HERE_MAX", 0)
    target = TableTarget(str(tmp_path / "tasks"), partition_by=("what",), **shape)
    assert run(spark, target) == here
    unchanged = [(number, "first", f"city {number}") for number in range(20) if number not in (3, 4)]
    expected = [*unchanged, (3, "later", "city 3"), (30, "new", "city 30"), (None, "null again", "city None")]
    assert here == sorted(expected, key=str)
    # Files of tasks that are not used are removed, the others stay.
    maintain(target, keep_days=0)
    assert store_of(target).count() == len(expected)


def test_a_key_of_several_columns_in_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With keys that are too many to be sent to all tasks."""
    monkeypatch.setattr(upserting, "ROWS_HERE_MAX", 0)
    monkeypatch.setattr(upsert_tasks, "BROADCAST_KEYS_MAX", 0)
    target = TableTarget(str(tmp_path / "tasks"), mode="upsert", key=("at", "what"), order_by="id")
    upsert(batch(spark, (1, "a", 1, None), (2, "a", 2, None), (3, "b", 1, None)), target, Mark("query", 0))
    upsert(batch(spark, (9, "a", 2, None), (8, "c", 1, None)), target, Mark("query", 1))
    # Here no part of the key can be null, and the order is of a narrower type.
    late = spark.range(2).select(
        F.lit("a").alias("what"),
        F.lit(AT.replace(hour=1)).alias("at"),
        (F.col("id") + 20).cast("int").alias("id"),
    )
    upsert(late, target, Mark("query", 2))
    rows = store_of(target).read().to_pylist()
    assert sorted(row["id"] for row in rows) == [3, 8, 9, 21]


class Foreign(NamedTuple):
    """What somebody else writes, and how often the tasks work then."""

    format: str
    rows: tuple[tuple[int, str, int, bool | None], ...]
    works: int


@pytest.mark.parametrize(
    "foreign",
    [
        # By its bounds this file could hold the keys 1 and 30.
        Foreign("delta", ((0, "x", 1, None), (40, "x", 1, None)), works=1),
        Foreign("iceberg", ((0, "x", 1, None), (40, "x", 1, None)), works=1),
        # A file that the tasks have rewritten, too.
        Foreign("delta", ((2, "x", 1, None),), works=2),
        Foreign("iceberg", ((2, "x", 1, None),), works=2),
        # A key that was new.
        Foreign("delta", ((30, "x", 1, None),), works=2),
    ],
)
def test_another_writer_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, foreign: Foreign
) -> None:
    """The table changes after the tasks have written: they work again only if that concerns their files or
    keys."""
    target = TableTarget(str(tmp_path / "tasks"), format=foreign.format, mode="upsert", key=("id",))
    upsert(batch(spark, (1, "a", 1, None), (2, "a", 1, None)), target, Mark("query", 0))
    version = type(store_of(target).version())
    replace, rewritten = version.replace, upsert_tasks._rewritten
    commits: list[Mark] = []
    works: list[Mark] = []

    def replace_late(self: object, *arguments: Any) -> None:
        commits.append(arguments[-1])
        if len(commits) == 1:
            with monkeypatch.context() as here:
                here.setattr(upserting, "ROWS_HERE_MAX", 100)
                upsert(batch(spark, *foreign.rows), target, Mark("another", 0))
        replace(self, *arguments)

    def counted(own: upserting.Upsert, *arguments: Any) -> Any:
        works.append(own.mark)
        return rewritten(own, *arguments)

    monkeypatch.setattr(upserting, "ROWS_HERE_MAX", 0)
    monkeypatch.setattr(version, "replace", replace_late)
    monkeypatch.setattr(upsert_tasks, "_rewritten", counted)
    upsert(batch(spark, (1, "b", 1, None), (30, "b", 1, None)), target, Mark("query", 1))
    assert commits == [Mark("query", 1), Mark("another", 0), Mark("query", 1)]
    assert works == [Mark("query", 1)] * foreign.works
    rows = store_of(target).read().to_pylist()
    expected = {2: "a"} | {id_: what for id_, what, *_ in foreign.rows} | {1: "b", 30: "b"}
    assert sorted((row["id"], row["what"]) for row in rows) == sorted(expected.items())
