"""Tables that are read in Spark's tasks, without Spark: the reader is pickled as Spark does."""

import pickle
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import sqlalchemy
from pyarrow import csv, parquet
from pyspark.sql.types import LongType, StringType, StructField, StructType
from tests.unit.spark.tables.filling import append, orders

from barnabas.spark.tables.origin import TableOrigin, origin_of
from barnabas.spark.tables.reading import TableReader, schema_of
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import Mark, TableError, TableTarget


def read(origin: TableOrigin, schema: StructType | None = None) -> list[dict[str, Any]]:
    reader = TableReader(origin_of(origin.as_options()), schema or schema_of(origin))
    partitions = reader.partitions()
    return rows_of(reader, partitions)


def rows_of(reader: TableReader, partitions: Any) -> list[dict[str, Any]]:
    task = pickle.loads(pickle.dumps(reader))
    parts = pickle.loads(pickle.dumps(list(partitions)))
    return [row for part in parts for batch in task.read(part) for row in batch.to_pylist()]


@pytest.mark.parametrize("refresh", ["batch", "start"])
@pytest.mark.parametrize("format_", ["delta", "iceberg", "parquet"])
def test_our_own_tables(tmp_path: Path, format_: str, refresh: str) -> None:
    target = TableTarget(str(tmp_path / "orders"), format=format_, partition_by=("category",))
    store = store_of(target)
    for batch in range(3):
        append(target, orders((batch, "tea", 1.0), (batch + 10, "milk & honey", 2.0)), Mark("query", batch))
    origin = TableOrigin(path=target.path, format=format_, refresh=refresh)
    rows = read(origin)
    assert sorted(row["id"] for row in rows) == sorted(store.read().column("id").to_pylist())
    assert {row["category"] for row in rows} == set(store.read().column("category").to_pylist())


def test_a_table_is_read_again_for_each_batch_or_as_it_was_at_the_start(tmp_path: Path) -> None:
    target = TableTarget(str(tmp_path / "orders"))
    store = store_of(target)
    append(target, orders((1, "tea", 1.0)), Mark("query", 0))
    before = store.count()
    readers = {
        refresh: TableReader(origin, schema_of(origin))
        for refresh in ("batch", "start")
        if (origin := TableOrigin(path=target.path, refresh=refresh))
    }
    partitions = {refresh: reader.partitions() for refresh, reader in readers.items()}
    append(target, orders((2, "tea", 1.0)), Mark("query", 1))
    counts = {name: len(rows_of(reader, partitions[name])) for name, reader in readers.items()}
    assert counts == {"batch": store.count(), "start": before}


def test_files_of_others(tmp_path: Path) -> None:
    rows = pyarrow.table({"id": [1, 2], "name": ["tea", "milk"]})
    for folder in ("parquet", "csv"):
        (tmp_path / folder).mkdir()
    parquet.write_table(rows, tmp_path / "parquet" / "a.parquet")
    csv.write_csv(rows, tmp_path / "csv" / "a.csv")
    for folder in ("parquet", "csv"):
        origin = TableOrigin(path=str(tmp_path / folder), format=folder)
        assert read(origin) == rows.to_pylist()
    more = StructType([StructField("name", StringType()), StructField("price", LongType())])
    origin = TableOrigin(path=str(tmp_path / "csv"), format="csv")
    assert read(origin, more)[0] == {"name": "tea", "price": None}
    wrong = StructType([StructField("name", LongType())])
    with pytest.raises(TableError, match=r"column name of the table .* cannot be read as int64"):
        read(origin, wrong)


@pytest.mark.parametrize("format_", ["delta", "iceberg", "parquet"])
def test_a_table_that_is_not_there(tmp_path: Path, format_: str) -> None:
    with pytest.raises(TableError, match=f"There is no {format_} table"):
        schema_of(TableOrigin(path=str(tmp_path / "none"), format=format_))


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE customers (id INTEGER, name TEXT, credit NUMERIC(9, 2), since DATE, active BOOLEAN)"
        )
        connection.exec_driver_sql(
            "INSERT INTO customers VALUES (1, 'Ada', 1.25, '2026-01-05', true), (2, 'Bob', NULL, NULL, false)"
        )
    engine.dispose()
    return url


def test_a_table_of_a_database(url: str) -> None:
    origin = TableOrigin(url=url, table="customers")
    assert schema_of(origin).simpleString() == (
        "struct<id:bigint,name:string,credit:decimal(9,2),since:date,active:boolean>"
    )
    rows = read(origin)
    assert [(row["id"], row["name"], row["active"]) for row in rows] == [(1, "Ada", True), (2, "Bob", False)]
    assert "shop.db" not in repr(origin), "a URL may have a password in it"


def test_a_query_of_a_database(url: str) -> None:
    origin = TableOrigin(url=url, query="SELECT id, upper(name) AS name FROM customers WHERE id > 1")
    schema = StructType([StructField("id", LongType()), StructField("name", StringType())])
    assert read(origin, schema) == [{"id": 2, "name": "BOB"}]
    with pytest.raises(TableError, match="give a schema"):
        schema_of(origin)


def test_databases_that_cannot_be_used(url: str) -> None:
    with pytest.raises(TableError, match="no table nobody"):
        schema_of(TableOrigin(url=url, table="nobody"))
    with pytest.raises(TableError, match="one of SQLAlchemy"):
        schema_of(TableOrigin(url="nothing://x", table="customers"))
