"""Iceberg tables, with the library `pyiceberg` and an SQLite catalog beside the table.

A batch is one transaction, which also stores the mark of the query in the properties of the table."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    ValidationException,
)
from pyiceberg.expressions import And, BooleanExpression, EqualTo, In, Or
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table, Transaction

from barnabas.spark.tables.files import DataFile
from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.iceberg_maintenance import (
    check_place,
    drop_snapshots,
    join_small_files,
    sweep_files,
)
from barnabas.spark.tables.maintenance import Figures, Maintained, disk_bytes, maintained
from barnabas.spark.tables.target import Conflict, Mark, TableTarget

NAMESPACE = "barnabas"
CATALOG_FILE = "catalog.db"
PROPERTIES = {
    # Before another attempt we must check again whether the batch is already there.
    "commit.retry.num-retries": "0",
    # Without merging, each batch adds a manifest that readers must read.
    "commit.manifest-merge.enabled": "true",
}


def catalog_of(path: Path) -> Catalog:
    """The catalog of the tables in a directory, `catalog.db`. Other tools can open it in the same way."""
    path.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog(NAMESPACE, uri=f"sqlite:///{path / CATALOG_FILE}", warehouse=f"file://{path}")
    try:
        catalog.create_namespace(NAMESPACE)
    except NamespaceAlreadyExistsError:
        return catalog
    return catalog


class IcebergStore:
    keeps_partition_columns = True

    def __init__(self, target: TableTarget) -> None:
        self._target = target
        path = Path(target.path).absolute()
        self._location = str(path)
        self._name = f"{NAMESPACE}.{path.name}"
        self._catalog = catalog_of(path.parent)
        self.staging = f"{self._location}/data"

    def _table(self) -> Table | None:
        try:
            return self._catalog.load_table(self._name)
        except NoSuchTableError:
            return None

    def _existing(self) -> Table:
        return self._catalog.load_table(self._name)

    def schema(self) -> pyarrow.Schema | None:
        table = self._table()
        return None if table is None else schema_to_pyarrow(table.schema(), include_field_ids=False)

    def prepare(self, fitting: Fitting) -> None:
        table = self._table()
        if table is None:
            schema = pyarrow.schema([(column.target, column.type) for column in fitting.columns])
            table = self._catalog.create_table_if_not_exists(
                self._name, schema, location=f"file://{self._location}", properties=PROPERTIES
            )
            if self._target.partition_by:
                with table.update_spec() as change:
                    for name in self._target.partition_by:
                        change.add_identity(name)
        elif fitting.added:
            with table.update_schema() as change:
                change.union_by_name(pyarrow.schema(fitting.added))

    def last_batch(self, query: str) -> int:
        table = self._table()
        return -1 if table is None else _last_batch(table, query)

    def append(self, files: Sequence[DataFile], mark: Mark) -> None:
        table = self._existing()
        if _last_batch(table, mark.query) >= mark.batch:
            return
        paths = [f"file://{self.staging}/{file.path}" for file in files]
        with _conflicts(), table.transaction() as change:
            if paths:
                change.add_files(paths, check_duplicate_files=False)
            change.set_properties({_property(mark.query): str(mark.batch)})

    def upsert(self, rows: Any, deleted: Any, mark: Mark) -> None:
        table = self._existing()
        if _last_batch(table, mark.query) >= mark.batch:
            return
        schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
        keys = pyarrow.concat_tables(
            [rows.select(list(self._target.key)), deleted.select(list(self._target.key))]
        )
        with _conflicts(), table.transaction() as change:
            if keys.num_rows:
                _delete(change, _any_of(keys, self._target.key))
            if rows.num_rows:
                change.append(_complete(rows, schema))
            change.set_properties({_property(mark.query): str(mark.batch)})

    def read(self) -> pyarrow.Table:
        return self._existing().scan().to_arrow()

    def count(self) -> int:
        table = self._table()
        return 0 if table is None else table.scan().count()

    def maintain(self, keep_days: float) -> Maintained:
        return maintained(self._figures, lambda: self._maintain(keep_days))

    def _figures(self) -> Figures:
        table = self._existing()
        files = sum(1 for _ in table.scan().plan_files())
        return Figures(files, disk_bytes(self._location), len(table.snapshots()))

    def _maintain(self, keep_days: float) -> int:
        check_place(self._existing(), Path(self._location))
        with _conflicts():
            join_small_files(self._existing(), self.staging, self._target.partition_by)
            drop_snapshots(self._existing(), keep_days)
        return sweep_files(self._existing(), Path(self._location), keep_days)


@contextmanager
def _conflicts() -> Iterator[None]:
    try:
        yield
    except (CommitFailedException, ValidationException) as error:
        raise Conflict(f"Another writer has changed the Iceberg table: {error}") from error


def _delete(change: Transaction, rows: BooleanExpression) -> None:
    """Without the warning about keys that the table does not have."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Delete operation did not match any records")
        change.delete(rows)


def _last_batch(table: Table, query: str) -> int:
    return int(table.properties.get(_property(query), -1))


def _property(query: str) -> str:
    return f"barnabas.batch.{query}"


def _any_of(keys: pyarrow.Table, names: tuple[str, ...]) -> BooleanExpression:
    """The condition that a row has one of these keys."""
    # The constructors take names and values, but their type hints do not say so.
    one_of: Any = In
    equal: Any = EqualTo
    if len(names) == 1:
        condition: BooleanExpression = one_of(names[0], tuple(dict.fromkeys(keys.column(0).to_pylist())))
        return condition
    each: list[BooleanExpression] = [
        reduce(And, [equal(name, row[name]) for name in names]) for row in keys.to_pylist()
    ]
    return reduce(Or, each)


def _complete(rows: pyarrow.Table, schema: pyarrow.Schema) -> pyarrow.Table:
    """The rows with all columns of the table, in its order; columns that the query does not have are null."""
    arrays = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pyarrow.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pyarrow.table(arrays, schema=schema)
