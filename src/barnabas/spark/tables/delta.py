"""Delta tables, with the library `deltalake`. A batch is one commit, which contains the mark of the query."""

import math
from collections.abc import Sequence

import pyarrow
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import TableNotFoundError
from pyarrow import fs

from barnabas.spark.tables.delta_versions import DeltaVersion, add_action, commit, conflicts, last_batch
from barnabas.spark.tables.files import DataFile, filesystem_of
from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.maintenance import Figures, Maintained, disk_bytes, maintained
from barnabas.spark.tables.target import Mark, TableTarget

HOURS_PER_DAY = 24


class DeltaStore:
    keeps_partition_columns = False

    def __init__(self, target: TableTarget) -> None:
        self._target = target
        self.staging = target.path

    def _table(self) -> DeltaTable | None:
        try:
            return DeltaTable(self._target.path)
        except TableNotFoundError:
            return None

    def _existing(self) -> DeltaTable:
        return DeltaTable(self._target.path)

    def schema(self) -> pyarrow.Schema | None:
        table = self._table()
        return None if table is None else pyarrow.schema(table.schema().to_arrow())

    def widens(self, name: str, narrow: pyarrow.DataType, wide: pyarrow.DataType) -> bool:
        """Delta has a feature for this, with which deltalake cannot write."""
        return False

    def prepare(self, fitting: Fitting) -> None:
        table = self._table()
        if table is None:
            schema = pyarrow.schema([(column.target, column.type) for column in fitting.columns])
            DeltaTable.create(
                self._target.path, schema, mode="ignore", partition_by=list(self._target.partition_by) or None
            )
        elif fitting.added:
            fields = DeltaSchema.from_arrow(pyarrow.schema(fitting.added)).fields
            table.alter.add_columns(list(fields))

    def last_batch(self, query: str) -> int:
        table = self._table()
        return -1 if table is None else last_batch(table, query)

    def append(self, files: Sequence[DataFile], mark: Mark) -> None:
        table = self._existing()
        if last_batch(table, mark.query) < mark.batch:
            commit(table, [add_action(file) for file in files], self._target, mark)

    def version(self) -> DeltaVersion:
        return DeltaVersion(self._existing(), self._target)

    def read(self) -> pyarrow.Table:
        # With Arrow's own file system: by default Arrow's threads call Python for each file, and crash the
        # process if it ends meanwhile.
        filesystem, root = filesystem_of(self._target.path)
        return self._existing().to_pyarrow_table(filesystem=fs.SubTreeFileSystem(root, filesystem))

    def count(self) -> int:
        table = self._table()
        return 0 if table is None else table.count()

    def maintain(self, keep_days: float) -> Maintained:
        return maintained(self._figures, lambda: self._maintain(keep_days))

    def _figures(self) -> Figures:
        table = self._existing()
        return Figures(len(table.file_uris()), disk_bytes(self._target.path), self._versions())

    def _versions(self) -> int:
        """How many commits the log has."""
        filesystem, root = filesystem_of(self._target.path)
        entries = filesystem.get_file_info(fs.FileSelector(f"{root}/_delta_log"))
        return sum(info.extension == "json" for info in entries)

    def _maintain(self, keep_days: float) -> int:
        table = self._existing()
        with conflicts():
            table.optimize.compact()
            # A full vacuum also removes files of failed tasks, which are in no commit.
            swept = table.vacuum(
                retention_hours=math.ceil(keep_days * HOURS_PER_DAY),
                dry_run=False,
                enforce_retention_duration=False,
                full=True,
            )
        # Log entries before a checkpoint can be removed, according to the table's delta.logRetentionDuration.
        table.create_checkpoint()
        table.cleanup_metadata()
        return len(swept)
