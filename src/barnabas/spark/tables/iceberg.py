"""Iceberg tables, by the `pyiceberg` library, with an SQLite catalog beside the table.

A batch is one transaction, in which the table's properties remember the query's mark."""

import warnings
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.expressions import And, BooleanExpression, EqualTo, In, Or
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table, Transaction

from barnabas.spark.tables.files import DataFile
from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.target import Mark, TableTarget

NAMESPACE = "barnabas"
CATALOG_FILE = "catalog.db"


def catalog_of(path: Path) -> Catalog:
    """The catalog of the tables in a directory: `catalog.db` in it. Other tools open it the same way."""
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
                self._name, schema, location=f"file://{self._location}"
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
        return -1 if table is None else int(table.properties.get(_property(query), -1))

    def append(self, files: Sequence[DataFile], mark: Mark) -> None:
        paths = [f"file://{self.staging}/{file.path}" for file in files]
        with self._existing().transaction() as change:
            if paths:
                change.add_files(paths, check_duplicate_files=False)
            change.set_properties({_property(mark.query): str(mark.batch)})

    def upsert(self, rows: Any, deleted: Any, mark: Mark) -> None:
        table = self._existing()
        wanted = schema_to_pyarrow(table.schema(), include_field_ids=False)
        keys = pyarrow.concat_tables(
            [rows.select(list(self._target.key)), deleted.select(list(self._target.key))]
        )
        with table.transaction() as change:
            if keys.num_rows:
                _delete(change, _any_of(keys, self._target.key))
            if rows.num_rows:
                change.append(_complete(rows, wanted))
            change.set_properties({_property(mark.query): str(mark.batch)})

    def read(self) -> pyarrow.Table:
        return self._existing().scan().to_arrow()

    def count(self) -> int:
        table = self._table()
        return 0 if table is None else table.scan().count()

    def maintain(self, keep_days: float) -> tuple[int, int]:
        """Small files are joined through memory; files that no snapshot ever named stay, and do no harm."""
        table = self._existing()
        before = len(list(table.scan().plan_files()))
        if before > 1:
            rows = table.scan().to_arrow()
            table.overwrite(rows)
        limit = datetime.now(UTC) - timedelta(days=keep_days)
        table.refresh()
        table.maintenance.expire_snapshots().older_than(limit.replace(tzinfo=None)).commit()
        table.refresh()
        return before, len(list(table.scan().plan_files()))


def _delete(change: Transaction, rows: BooleanExpression) -> None:
    """Keys that the table does not have yet are no reason to warn."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Delete operation did not match any records")
        change.delete(rows)


def _property(query: str) -> str:
    return f"barnabas.batch.{query}"


def _any_of(keys: pyarrow.Table, names: tuple[str, ...]) -> BooleanExpression:
    """Whether a row has one of these keys."""
    # Their constructors take names and values, which their types do not say.
    one_of: Any = In
    equal: Any = EqualTo
    if len(names) == 1:
        found: BooleanExpression = one_of(names[0], tuple(dict.fromkeys(keys.column(0).to_pylist())))
        return found
    each: list[BooleanExpression] = [
        reduce(And, [equal(name, row[name]) for name in names]) for row in keys.to_pylist()
    ]
    return reduce(Or, each)


def _complete(rows: pyarrow.Table, wanted: pyarrow.Schema) -> pyarrow.Table:
    """Columns that the query lacks are null, and all stand in the table's order."""
    arrays = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pyarrow.nulls(rows.num_rows, field.type)
        for field in wanted
    ]
    return pyarrow.table(arrays, schema=wanted)
