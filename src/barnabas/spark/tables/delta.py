"""Delta tables, with the library `deltalake`. A batch is one commit, which contains the mark of the query."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow import fs

from barnabas.spark.tables.files import DataFile, filesystem_of
from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.maintenance import Figures, Maintained, disk_bytes, maintained
from barnabas.spark.tables.target import Conflict, Mark, TableTarget

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
        return -1 if table is None else _last_batch(table, query)

    def append(self, files: Sequence[DataFile], mark: Mark) -> None:
        table = self._existing()
        if _last_batch(table, mark.query) >= mark.batch:
            return
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(
                path=file.path,
                size=file.size,
                partition_values=dict(file.partition),
                modification_time=now,
                data_change=True,
                stats=json.dumps({"numRecords": file.rows}),
            )
            for file in files
        ]
        with _conflicts():
            table.create_write_transaction(
                actions,
                "append",
                table.schema(),
                list(self._target.partition_by) or None,
                commit_properties=_marked(mark),
            )

    def upsert(self, rows: Any, deleted: Any, mark: Mark) -> None:
        table = self._existing()
        if _last_batch(table, mark.query) >= mark.batch:
            return
        marked = rows.append_column("_deleted", pyarrow.array([False] * rows.num_rows))
        if deleted.num_rows:
            gone = deleted.append_column("_deleted", pyarrow.array([True] * deleted.num_rows))
            marked = pyarrow.concat_tables([marked, gone], promote_options="default")
        names = {name: f"source.`{name}`" for name in rows.column_names}
        same = " AND ".join(f"target.`{name}` = source.`{name}`" for name in self._target.key)
        merge = (
            table.merge(
                marked, same, source_alias="source", target_alias="target", commit_properties=_marked(mark)
            )
            .when_matched_delete("source.`_deleted`")
            .when_matched_update(
                {f"`{name}`": value for name, value in names.items()}, "NOT source.`_deleted`"
            )
            .when_not_matched_insert(
                {f"`{name}`": value for name, value in names.items()}, "NOT source.`_deleted`"
            )
        )
        with _conflicts():
            merge.execute()

    def read(self) -> pyarrow.Table:
        return self._existing().to_pyarrow_table()

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
        with _conflicts():
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


@contextmanager
def _conflicts() -> Iterator[None]:
    try:
        yield
    except CommitFailedError as error:
        raise Conflict(f"Another writer has changed the Delta table: {error}") from error


def _last_batch(table: DeltaTable, query: str) -> int:
    version = table.transaction_version(query)
    return -1 if version is None else version


def _marked(mark: Mark) -> CommitProperties:
    return CommitProperties(
        custom_metadata={"query": mark.query, "batch": str(mark.batch)},
        # Before another attempt we must check again whether the batch is already there.
        max_commit_retries=0,
        app_transactions=[Transaction(mark.query, mark.batch)],
    )
