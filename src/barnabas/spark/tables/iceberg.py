"""Iceberg tables, with the library `pyiceberg`.

A batch is one transaction, which also stores the mark of the query in the properties of the table."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table

from barnabas.spark.tables.files import DataFile
from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.iceberg_catalogs import path_of, registered, uri_of
from barnabas.spark.tables.iceberg_maintenance import (
    check_place,
    drop_snapshots,
    join_small_files,
    sweep_files,
)
from barnabas.spark.tables.iceberg_versions import IcebergVersion, commit, conflicts, last_batch
from barnabas.spark.tables.maintenance import Figures, Maintained, disk_bytes, maintained
from barnabas.spark.tables.target import Mark, TableTarget

PROPERTIES = {
    # Before another attempt we must check again whether the batch is already there.
    "commit.retry.num-retries": "0",
    # Without merging, each batch adds a manifest that readers must read.
    "commit.manifest-merge.enabled": "true",
}
# The types that Iceberg allows to widen, with their names in Arrow.
WIDER = (("int32", "int64"), ("float", "double"))


class IcebergStore:
    keeps_partition_columns = True

    def __init__(self, target: TableTarget) -> None:
        self._target = target
        self._catalog, self._name, self._location = registered(target.path, target.catalog)

    @property
    def staging(self) -> str:
        return f"{self._root}/data"

    @property
    def _root(self) -> str:
        """The path of the table; if a catalog has chosen it, the table exists."""
        return path_of(self._location or self._existing().location())

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

    def widens(self, name: str, narrow: pyarrow.DataType, wide: pyarrow.DataType) -> bool:
        """Iceberg reads old files with the new type. The values of partitions are stored elsewhere, too."""
        return name not in self._target.partition_by and (str(narrow), str(wide)) in WIDER

    def prepare(self, fitting: Fitting) -> None:
        table = self._table()
        if table is None:
            schema = pyarrow.schema([(column.target, column.type) for column in fitting.columns])
            table = self._catalog.create_table_if_not_exists(
                self._name, schema, location=self._location, properties=PROPERTIES
            )
            if self._target.partition_by:
                with table.update_spec() as change:
                    for name in self._target.partition_by:
                        change.add_identity(name)
        elif fitting.added or fitting.widened:
            with table.update_schema() as change:
                change.union_by_name(pyarrow.schema([*fitting.added, *fitting.widened]))

    def last_batch(self, query: str) -> int:
        table = self._table()
        return -1 if table is None else last_batch(table, query)

    def append(self, files: Sequence[DataFile], mark: Mark) -> None:
        table = self._existing()
        if last_batch(table, mark.query) < mark.batch:
            staging = self.staging
            commit(table, [], [uri_of(f"{staging}/{file.path}") for file in files], mark)

    def version(self) -> IcebergVersion:
        return IcebergVersion(self._existing(), self._target, self.staging)

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
        return Figures(files, disk_bytes(self._root), len(table.snapshots()))

    def _maintain(self, keep_days: float) -> int:
        if self._location is not None:
            check_place(self._existing(), Path(self._root))
        with conflicts():
            join_small_files(self._existing(), self.staging, self._target.partition_by)
            drop_snapshots(self._existing(), keep_days)
        # In object stores, files that no snapshot names stay.
        return 0 if "://" in self._root else sweep_files(self._existing(), Path(self._root), keep_days)
