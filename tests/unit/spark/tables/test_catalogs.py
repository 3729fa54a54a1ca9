"""Iceberg tables in catalogs: a REST service and a database, with files here and in an S3 server."""

from pathlib import Path

import pytest
from tests.unit.spark.tables.filling import append, orders, rows_of
from tests.unit.spark.tables.object_store import s3_bucket
from tests.unit.spark.tables.rest_catalog import rest_catalog

from barnabas.spark.tables.origin import TableOrigin
from barnabas.spark.tables.reading import newest
from barnabas.spark.tables.store import maintain, store_of
from barnabas.spark.tables.target import Mark, Settings, TableError, TableTarget, target_of

NAME = "shop.orders"


def check_table(catalog: Settings) -> None:
    """Batches that are written once, a new column, maintenance, and a reader."""
    given = TableTarget(NAME, format="iceberg", partition_by=("category",), catalog=catalog)
    # Spark's tasks get it as options.
    target = target_of(given.as_options())
    assert target == given
    append(target, orders((1, "tea", 1.0), (2, "milk", 2.0)), Mark("query", 0))
    append(target, orders((1, "tea", 1.0), (2, "milk", 2.0)), Mark("query", 0))
    more = orders((3, "tea", 3.0))
    append(target, more.append_column("note", [["x"]]), Mark("query", 1))
    expected = [(1, None), (2, None), (3, "x")]
    assert [(row["id"], row["note"]) for row in rows_of(target)] == expected
    assert store_of(target).last_batch("query") == 1
    done = maintain(target, keep_days=0)
    assert (done.files_before, done.files_after) == (3, 2)
    assert [(row["id"], row["note"]) for row in rows_of(target)] == expected
    version = newest(TableOrigin(path=NAME, format="iceberg", catalog=catalog))
    batches = [batch for part in version.parts() for batch in version.read(part)]
    assert sorted(number for batch in batches for number in batch["id"].to_pylist()) == [1, 2, 3]


def test_a_rest_catalog(tmp_path: Path) -> None:
    with rest_catalog(tmp_path) as url:
        check_table((("type", "rest"), ("uri", url)))


def test_a_database_as_a_catalog_of_files_in_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_bucket(monkeypatch) as bucket:
        check_table(
            (
                ("type", "sql"),
                ("uri", f"sqlite:///{tmp_path / 'catalog.db'}"),
                ("warehouse", f"{bucket}/warehouse"),
            )
        )


def test_catalogs_that_cannot_be_used() -> None:
    with pytest.raises(TableError, match=r"namespace, as in shop.orders, not 'orders'"):
        store_of(TableTarget("orders", format="iceberg", catalog=(("type", "sql"),)))
    with pytest.raises(TableError, match=r"catalog of shop.orders cannot be used"):
        store_of(TableTarget(NAME, format="iceberg", catalog=(("type", "nothing"),)))
    with pytest.raises(TableError, match="There is no iceberg table"):
        newest(TableOrigin(path=NAME, format="iceberg", catalog=(("type", "in-memory"),)))
