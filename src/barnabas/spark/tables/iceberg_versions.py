"""Versions of Iceberg tables: their files, how tasks read them, and transactions that change them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import PrimitiveType

from barnabas.spark.tables.files import DataFile
from barnabas.spark.tables.iceberg_catalogs import uri_of
from barnabas.spark.tables.statistics import has_bounds
from barnabas.spark.tables.target import Conflict, Mark, TableTarget
from barnabas.spark.tables.versions import StoredFile


class IcebergVersion:
    def __init__(self, table: Table, target: TableTarget, staging: str) -> None:
        self._table = table
        self._target = target
        self._staging = staging
        self.schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
        self._tasks = {task.file.file_path: task for task in table.scan().plan_files()}
        self.files = [self._stored(task) for task in self._tasks.values()]

    def _stored(self, task: FileScanTask) -> StoredFile:
        file = task.file
        bounds: dict[str, tuple[Any, Any]] = {}
        for name in self._target.key:
            field = self._table.schema().find_field(name)
            kind = field.field_type
            low = (file.lower_bounds or {}).get(field.field_id)
            high = (file.upper_bounds or {}).get(field.field_id)
            if low is None or high is None or not isinstance(kind, PrimitiveType):
                continue
            if has_bounds(self.schema.field(name).type):
                bounds[name] = (from_bytes(kind, low), from_bytes(kind, high))
        deletes = tuple(sorted(each.file_path for each in task.delete_files))
        return StoredFile(file.file_path, file.file_size_in_bytes, bounds, deletes)

    def last_batch(self, query: str) -> int:
        return last_batch(self._table, query)

    def reader(self, files: Iterable[StoredFile]) -> "IcebergReader":
        tasks = {file.path: self._tasks[file.path] for file in files}
        return IcebergReader(self._table.metadata, self._table.io, tasks)

    def replace(self, removed: Collection[StoredFile], added: Sequence[DataFile], mark: Mark) -> None:
        gone = [self._tasks[file.path].file for file in removed]
        commit(self._table, gone, [uri_of(f"{self._staging}/{file.path}") for file in added], mark)


class IcebergReader:
    """Reads files without the rows that their delete files name."""

    def __init__(self, metadata: TableMetadata, io: FileIO, tasks: dict[str, FileScanTask]) -> None:
        self._metadata = metadata
        self._io = io
        self._tasks = tasks

    def batches(self, path: str, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        projected = self._metadata.schema().select(*columns)
        # Files that are added must not contain field ids.
        plain = schema_to_pyarrow(projected, include_field_ids=False)
        schema = pyarrow.schema([plain.field(name) for name in columns])
        scan = ArrowScan(self._metadata, self._io, projected, AlwaysTrue())
        for batch in scan.to_record_batches([self._tasks[path]]):
            yield batch.select(list(columns)).cast(schema)


def commit(table: Table, removed: Sequence[IcebergFile], added: Sequence[str], mark: Mark) -> None:
    """Remove and add files and store the mark in one transaction; Conflict if the table has changed since it
    was loaded."""
    with conflicts(), table.transaction() as change:
        if removed:
            with change.update_snapshot().overwrite() as replaced:
                for file in removed:
                    replaced.delete_data_file(file)
        if added:
            change.add_files(list(added), check_duplicate_files=False)
        change.set_properties({mark.property: str(mark.batch)})


@contextmanager
def conflicts() -> Iterator[None]:
    try:
        yield
    except (CommitFailedException, ValidationException) as error:
        raise Conflict(f"Another writer has changed the Iceberg table: {error}") from error


def last_batch(table: Table, query: str) -> int:
    """From the properties of the table, and of its snapshots, where MERGE INTO of Spark stores it."""
    name = Mark(query, 0).property
    summaries = (snapshot.summary for snapshot in table.snapshots())
    marks = [summary.get(name) for summary in summaries if summary is not None]
    return max(int(mark) for mark in (table.properties.get(name), *marks, -1) if mark is not None)
