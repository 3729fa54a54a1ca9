"""Rows for tests of tables, and how they are written without Spark."""

import pyarrow

from barnabas.spark.tables.files import DataFile, FileWriter, write_files
from barnabas.spark.tables.fitting import fitting_of
from barnabas.spark.tables.store import append as append_files
from barnabas.spark.tables.store import patiently, store_of
from barnabas.spark.tables.target import DELETED, Mark, TableTarget
from barnabas.spark.tables.upserting import upsert_here, upsert_into


def orders(*rows: tuple[int, str, float]) -> pyarrow.Table:
    names = ["id", "category", "amount"]
    return pyarrow.table([pyarrow.array(list(column)) for column in zip(*rows, strict=True)], names=names)


def written(target: TableTarget, rows: pyarrow.Table) -> list[DataFile]:
    """Files as Spark's tasks write them, after the driver has created the table."""
    store = store_of(target)
    fitting = fitting_of(store.schema(), rows.schema, evolve=target.evolve, widens=store.widens)
    store.prepare(fitting)
    writer = FileWriter(
        store.staging, target.partition_by, keep_partition_columns=store.keeps_partition_columns
    )
    return write_files(writer, [fitting.fit(rows)])


def append(target: TableTarget, rows: pyarrow.Table, mark: Mark) -> None:
    """As Spark's tasks and driver do it."""
    append_files(store_of(target), written(target, rows), mark)


def upsert(target: TableTarget, rows: pyarrow.Table, mark: Mark) -> None:
    """As the driver upserts a small batch."""
    store = store_of(target)
    into = upsert_into(store, target, rows.schema, mark)
    assert patiently(lambda: upsert_here(into, rows))


def deleted(rows: pyarrow.Table, *flags: bool) -> pyarrow.Table:
    """The rows with a column that says which of them are deleted."""
    return rows.append_column(DELETED, pyarrow.array(flags))


def rows_of(target: TableTarget) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = store_of(target).read().to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))
