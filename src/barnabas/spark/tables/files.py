"""The Parquet files of tasks: one for each combination of partition values, with a unique name.

A file is part of the table only when a commit names it. Maintenance removes the files of failed tasks."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow
import pyarrow.compute
from pyarrow import fs, parquet

from barnabas.spark.tables.statistics import Statistics, statistics_of

ROWS_PER_FILE_MAX = 2_000_000
# Rows wait until they fill a row group of this size: small groups are slow to write and to read.
GROUP_BYTES = 64 << 20
# The rows that wait for all open files of a task.
WAITING_BYTES_MAX = 128 << 20
ROW = "__row"
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class DataFile(NamedTuple):
    """A file; its path is relative to the path of the table."""

    path: str
    size: int
    rows: int
    partition: tuple[tuple[str, str | None], ...]
    statistics: Mapping[str, Statistics]


class FileWriter:
    """Writes tables with one schema; `close` returns the files."""

    def __init__(self, root: str, partition_by: tuple[str, ...], *, keep_partition_columns: bool) -> None:
        self._filesystem, self._root = filesystem_of(root)
        self._partition_by = partition_by
        self._drops = () if keep_partition_columns else partition_by
        self._open: dict[tuple[tuple[str, str | None], ...], _OpenFile] = {}
        self._done: list[DataFile] = []

    def write(self, table: pyarrow.Table) -> None:
        if table.num_rows == 0:
            return
        for values, rows in _split(table, self._partition_by):
            file = self._open.get(values)
            if file is None:
                rows = rows.drop_columns(list(self._drops)) if self._drops else rows
                file = self._open[values] = self._start(values, rows.schema)
            elif self._drops:
                rows = rows.drop_columns(list(self._drops))
            file.write(rows)
            if file.rows >= ROWS_PER_FILE_MAX:
                self._done.append(self._open.pop(values).close())
        while sum(file.waiting_bytes for file in self._open.values()) > WAITING_BYTES_MAX:
            max(self._open.values(), key=lambda file: file.waiting_bytes).flush()

    def close(self) -> list[DataFile]:
        while self._open:
            self._done.append(self._open.popitem()[1].close())
        return self._done

    def _start(self, values: tuple[tuple[str, str | None], ...], schema: pyarrow.Schema) -> "_OpenFile":
        folders = [f"{quote(name, safe='')}={_quoted(value)}" for name, value in values]
        path = "/".join([*folders, f"part-{uuid.uuid4().hex}.parquet"])
        if folders:
            self._filesystem.create_dir(f"{self._root}/{'/'.join(folders)}", recursive=True)
        return _OpenFile(self._filesystem, self._root, path, values, schema)


class _OpenFile:
    def __init__(
        self,
        filesystem: fs.FileSystem,
        root: str,
        path: str,
        values: tuple[tuple[str, str | None], ...],
        schema: pyarrow.Schema,
    ) -> None:
        self._path, self._values = path, values
        self._filesystem, self._place = filesystem, f"{root}/{path}"
        self._metadata: list[Any] = []
        self._writer = parquet.ParquetWriter(
            self._place,
            schema,
            filesystem=filesystem,
            compression="zstd",
            metadata_collector=self._metadata,
        )
        self._waiting: list[pyarrow.Table] = []
        self.waiting_bytes = 0
        self.rows = 0

    def write(self, rows: pyarrow.Table) -> None:
        self._waiting.append(rows)
        self.waiting_bytes += rows.nbytes
        self.rows += rows.num_rows
        if self.waiting_bytes >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the waiting rows as one row group."""
        if self._waiting:
            self._writer.write_table(pyarrow.concat_tables(self._waiting))
            self._waiting, self.waiting_bytes = [], 0

    def close(self) -> DataFile:
        self.flush()
        self._writer.close()
        size = self._filesystem.get_file_info(self._place).size
        return DataFile(self._path, size, self.rows, self._values, statistics_of(self._metadata[0]))


def filesystem_of(path: str) -> tuple[fs.FileSystem, str]:
    """The file system and path for a local directory, which is created, or for a URI (s3://...)."""
    if "://" in path:
        filesystem, inner = fs.FileSystem.from_uri(path)
        return filesystem, inner
    directory = Path(path)
    directory.mkdir(parents=True, exist_ok=True)
    return fs.LocalFileSystem(), str(directory.absolute())


def _quoted(value: str | None) -> str:
    return NO_VALUE if value is None else quote(value, safe="")


def _split(
    table: pyarrow.Table, partition_by: tuple[str, ...]
) -> Iterator[tuple[tuple[tuple[str, str | None], ...], pyarrow.Table]]:
    """The rows grouped by their values, as texts, in these columns."""
    if not partition_by:
        yield (), table
        return
    texts = [table.column(name).cast(pyarrow.string()).combine_chunks() for name in partition_by]
    combined = pyarrow.table(texts, names=list(partition_by)).append_column(
        ROW, pyarrow.arange(0, table.num_rows)
    )
    grouped = combined.group_by(list(partition_by)).aggregate([(ROW, "list")])
    lists = grouped.column(f"{ROW}_list").combine_chunks()
    for place, group in enumerate(grouped.select(list(partition_by)).to_pylist()):
        values = tuple((name, group[name]) for name in partition_by)
        # The values of a list are an array: no Python object is made for a row.
        yield values, table.take(lists[place].values)


def write_files(writer: FileWriter, tables: Iterable[Any]) -> list[DataFile]:
    for table in tables:
        writer.write(table)
    return writer.close()
