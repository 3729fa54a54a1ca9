"""Rows in a real database, SQLite: each batch once, with its mark in the same transaction."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import sqlalchemy

from barnabas.spark.tables.databases import write_rows
from barnabas.spark.tables.target import Mark, TableError


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    yield engine
    engine.dispose()


def write(engine: sqlalchemy.Engine, batch: int, *rows: Any, key: tuple[str, ...] = ()) -> None:
    table = pyarrow.Table.from_pylist(list(rows))
    write_rows(str(engine.url), "orders", key, table, Mark("query", batch))


def rows_in(engine: sqlalchemy.Engine) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT id, name FROM orders ORDER BY id")
        return [tuple(row) for row in found]


def row(number: int, name: str | None, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, **more}


def test_a_batch_is_written_once(engine: sqlalchemy.Engine) -> None:
    write(engine, 0, row(1, "tea"))
    write(engine, 0, row(1, "tea"))
    write(engine, 1, row(2, "milk"))
    write(engine, 0, row(3, "late"))
    assert rows_in(engine) == [(1, "tea"), (2, "milk")]


def test_a_batch_that_fails_leaves_nothing(engine: sqlalchemy.Engine) -> None:
    with pytest.raises(sqlalchemy.exc.IntegrityError):
        write(engine, 0, row(1, "tea"), row(2, None))
    assert rows_in(engine) == []
    write(engine, 0, row(1, "tea"))
    assert rows_in(engine) == [(1, "tea")]


def test_rows_replace_those_with_their_key_or_remove_them(engine: sqlalchemy.Engine) -> None:
    write(engine, 0, row(1, "tea", _deleted=False), row(2, "milk", _deleted=False), key=("id",))
    write(engine, 1, row(1, "water", _deleted=False), row(2, "milk", _deleted=True), key=("id",))
    assert rows_in(engine) == [(1, "water")]


def test_what_the_database_lacks(engine: sqlalchemy.Engine) -> None:
    with pytest.raises(TableError, match="no column price, color"):
        write(engine, 0, row(1, "tea", price=1, color="green"))
    with pytest.raises(TableError, match="no table nobody: create it"):
        write_rows(str(engine.url), "nobody", (), pyarrow.table({"id": [1]}), Mark("query", 0))
