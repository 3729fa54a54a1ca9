"""Versions of Delta tables: their files, how tasks read them, and commits that add and remove files."""

import json
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import pyarrow
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from barnabas.spark.tables.files import DataFile, filesystem_of
from barnabas.spark.tables.statistics import as_delta, has_bounds, widened
from barnabas.spark.tables.target import Conflict, Mark, TableError, TableTarget
from barnabas.spark.tables.versions import StoredFile

BATCH_ROWS = 65_536


class DeltaVersion:
    def __init__(self, table: DeltaTable, target: TableTarget) -> None:
        self._table = table
        self._target = target
        self.schema = pyarrow.schema(table.schema().to_arrow())
        self._check_deletion_vectors()
        self._partition_by = table.metadata().partition_columns
        self._entries = pyarrow.table(table.get_add_actions(flatten=True)).to_pylist()
        self.files = [self._stored(entry) for entry in self._entries]

    def _check_deletion_vectors(self) -> None:
        features = self._table.protocol().reader_features or []
        if "deletionVectors" in features and self._table.deletion_vectors().read_all().num_rows:
            raise TableError(
                f"The Delta table at {self._target.path} has deletion vectors: apply them first (REORG TABLE"
                " ... APPLY (PURGE)), or run the pipeline in a Spark session with Delta's extension."
            )

    def _stored(self, entry: dict[str, Any]) -> StoredFile:
        bounds: dict[str, tuple[Any, Any]] = {}
        for name in self._target.key:
            if name in self._partition_by:
                low = high = entry[f"partition.{name}"]
            else:
                low, high = entry.get(f"min.{name}"), widened(entry.get(f"max.{name}"))
            if low is not None and high is not None and has_bounds(self.schema.field(name).type):
                bounds[name] = (low, high)
        return StoredFile(unquote(entry["path"]), entry["size_bytes"], bounds)

    def last_batch(self, query: str) -> int:
        return last_batch(self._table, query)

    def reader(self, files: Iterable[StoredFile]) -> "DeltaReader":
        wanted = {file.path for file in files}
        values = {
            unquote(entry["path"]): {name: entry[f"partition.{name}"] for name in self._partition_by}
            for entry in self._entries
            if unquote(entry["path"]) in wanted
        }
        return DeltaReader(self._target.path, self.schema, values)

    def replace(self, removed: Collection[StoredFile], added: Sequence[DataFile], mark: Mark) -> None:
        now = int(time.time() * 1000)
        gone = [RemoveAction(file.path, True, now, file.size) for file in removed]
        commit(self._table, [*gone, *(add_action(file) for file in added)], self._target, mark)


class DeltaReader:
    """Reads files with the values of their partition columns, which are not in the files."""

    def __init__(self, root: str, schema: pyarrow.Schema, values: dict[str, dict[str, Any]]) -> None:
        self._root = root
        self._schema = schema
        self._values = values

    def batches(self, path: str, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        # This module of Arrow imports pandas, which takes time, and most processes read no files.
        from pyarrow import dataset

        values = self._values[path]
        filesystem, root = filesystem_of(self._root)
        inside = pyarrow.schema([field for field in self._schema if field.name not in values])
        file = dataset.dataset(f"{root}/{path}", schema=inside, filesystem=filesystem, format="parquet")
        # With threads, more batches would be in memory than needed.
        batches = file.to_batches(
            columns=[name for name in columns if name not in values],
            batch_size=BATCH_ROWS,
            batch_readahead=1,
            use_threads=False,
        )
        schema = pyarrow.schema([self._schema.field(name) for name in columns])
        for batch in batches:
            arrays = [
                _repeated(values[field.name], field.type, batch.num_rows)
                if field.name in values
                else batch.column(field.name)
                for field in schema
            ]
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _repeated(value: Any, kind: pyarrow.DataType, count: int) -> pyarrow.Array:
    return pyarrow.nulls(count, kind) if value is None else pyarrow.repeat(pyarrow.scalar(value, kind), count)


def add_action(file: DataFile) -> AddAction:
    return AddAction(
        path=file.path,
        size=file.size,
        partition_values=dict(file.partition),
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=json.dumps(as_delta(file.rows, file.statistics)),
    )


def commit(
    table: DeltaTable, actions: list[AddAction | RemoveAction], target: TableTarget, mark: Mark
) -> None:
    """Commit all actions and the mark at once; Conflict if the table has changed since it was loaded."""
    with conflicts():
        table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            list(target.partition_by) or None,
            commit_properties=_marked(mark),
        )


@contextmanager
def conflicts() -> Iterator[None]:
    try:
        yield
    except CommitFailedError as error:
        raise Conflict(f"Another writer has changed the Delta table: {error}") from error


def last_batch(table: DeltaTable, query: str) -> int:
    version = table.transaction_version(query)
    return -1 if version is None else version


def _marked(mark: Mark) -> CommitProperties:
    return CommitProperties(
        custom_metadata={"query": mark.query, "batch": str(mark.batch)},
        # Before another attempt we must check again whether the batch is already there.
        max_commit_retries=0,
        app_transactions=[Transaction(mark.query, mark.batch)],
    )
