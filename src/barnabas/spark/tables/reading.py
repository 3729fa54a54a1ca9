"""Reads tables in Spark's tasks: Delta, Iceberg, Parquet and CSV files, and databases.

A table that is read again for each batch is read by one task, which sees one version of it. Otherwise the
driver takes a version, and tasks read its files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow
from pyarrow import dataset, fs
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from barnabas.spark.tables.files import filesystem_of
from barnabas.spark.tables.fitting import stored_type
from barnabas.spark.tables.origin import BATCH, TableOrigin
from barnabas.spark.tables.target import TableError

TASKS_MAX = 64


class Version(Protocol):
    """One version of a table."""

    @property
    def schema(self) -> pyarrow.Schema: ...

    def parts(self) -> list[Any]:
        """What tasks read: values that can be pickled."""

    def read(self, part: Any) -> Iterator[pyarrow.RecordBatch]: ...


def newest(origin: TableOrigin) -> Version:
    """The newest version of a table; TableError if there is none."""
    if origin.url:
        from barnabas.spark.tables.databases import DatabaseVersion

        return DatabaseVersion(origin)
    if origin.format == "iceberg":
        return IcebergVersion(origin)
    return _Fragments(_dataset(origin))


def _dataset(origin: TableOrigin) -> dataset.Dataset:
    if origin.format == "delta":
        return _delta(origin)
    filesystem, root = filesystem_of(origin.path)
    if filesystem.get_file_info(root).type == fs.FileType.NotFound:
        raise _missing(origin)
    # Names that begin with _ or . are no data files; our own tables have such directories.
    found = dataset.dataset(root, filesystem=filesystem, format=origin.format, partitioning="hive")
    if not found.files:
        raise _missing(origin)
    return found


def _delta(origin: TableOrigin) -> dataset.Dataset:
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        table = DeltaTable(origin.path)
    except TableNotFoundError as error:
        raise _missing(origin) from error
    filesystem, root = filesystem_of(origin.path)
    return table.to_pyarrow_dataset(filesystem=fs.SubTreeFileSystem(root, filesystem))


def _missing(origin: TableOrigin) -> TableError:
    return TableError(
        f"There is no {origin.format} table at {origin.path}: correct path or format, or write the table"
        f" first."
    )


class _Fragments:
    """Files that Arrow reads."""

    def __init__(self, files: dataset.Dataset) -> None:
        self.schema = files.schema
        self._files: dataset.Dataset | None = files

    def __getstate__(self) -> dict[str, Any]:
        # A task gets its own files as parts.
        return {"schema": self.schema, "_files": None}

    def parts(self) -> list[Any]:
        return [] if self._files is None else list(self._files.get_fragments())

    def read(self, part: Any) -> Iterator[pyarrow.RecordBatch]:
        # In this thread: Spark already runs a task on each core.
        yield from part.to_batches(schema=self.schema, use_threads=False)


class IcebergVersion:
    """A file of metadata describes a version completely, so tasks need no catalog."""

    def __init__(self, origin: TableOrigin) -> None:
        from pyiceberg.exceptions import NoSuchTableError
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        from barnabas.spark.tables.iceberg_catalogs import registered

        catalog, name, _ = registered(origin.path, origin.catalog)
        try:
            table = catalog.load_table(name)
        except NoSuchTableError as error:
            raise _missing(origin) from error
        self._metadata = table.metadata_location
        self._properties = dict(table.io.properties)
        self.schema = schema_to_pyarrow(table.schema(), include_field_ids=False)

    def _table(self) -> Any:
        from pyiceberg.table import StaticTable

        return StaticTable.from_metadata(self._metadata, self._properties)

    def parts(self) -> list[Any]:
        return [task.file.file_path for task in self._table().scan().plan_files()]

    def read(self, part: Any) -> Iterator[pyarrow.RecordBatch]:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        table = self._table()
        tasks = [task for task in table.scan().plan_files() if task.file.file_path == part]
        scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
        yield from scan.to_table(tasks).to_batches()


def schema_of(origin: TableOrigin) -> StructType:
    """The columns of a table as Spark's types."""
    schema = newest(origin).schema
    fields = [pyarrow.field(each.name, stored_type(each.type)) for each in schema]
    return from_arrow_schema(pyarrow.schema(fields))


class Whole(InputPartition):
    """The table as it is when the task reads it."""

    def __init__(self) -> None:
        super().__init__(None)


@dataclass
class Parts(InputPartition):
    version: Any
    parts: list[Any]


class TableReader(DataSourceReader):
    def __init__(self, origin: TableOrigin, schema: StructType) -> None:
        self._origin = origin
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        if self._origin.refresh == BATCH:
            # Spark asks once for the partitions of all batches of a stream.
            return [Whole()]
        version = newest(self._origin)
        parts = version.parts()
        count = min(len(parts), TASKS_MAX)
        return [Parts(version, parts[number::count]) for number in range(count)] or [Parts(version, [])]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        schema = to_arrow_schema(self._schema, timezone="UTC")
        if isinstance(partition, Parts):
            version, parts = partition.version, partition.parts
        else:
            version = newest(self._origin)
            parts = version.parts()
        for part in parts:
            for batch in version.read(part):
                if batch.num_rows:
                    yield _fitted(batch, schema, self._origin)


def _fitted(batch: pyarrow.RecordBatch, schema: pyarrow.Schema, origin: TableOrigin) -> pyarrow.RecordBatch:
    """The batch with the columns that the query knows; a column that the table has lost is null."""
    arrays = []
    for field in schema:
        if field.name not in batch.schema.names:
            arrays.append(pyarrow.nulls(batch.num_rows, field.type))
            continue
        try:
            arrays.append(batch.column(field.name).cast(field.type))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
            raise TableError(
                f"The column {field.name} of the table at {origin.path or origin.table} cannot be read as"
                f" {field.type}: {error}. Start the pipeline again if the table has changed."
            ) from error
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)
