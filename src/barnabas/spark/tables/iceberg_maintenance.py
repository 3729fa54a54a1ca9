"""Maintenance of Iceberg tables: joins small files, drops old snapshots and removes files that no snapshot
names.

Files are joined partition by partition, a few at a time, so that memory holds only one new file. All joins
are one transaction. Removes files below the directory of the table."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.table import FileScanTask, Table

from barnabas.spark.tables.files import DataFile, FileWriter, write_files
from barnabas.spark.tables.iceberg_catalogs import path_of, uri_of
from barnabas.spark.tables.maintenance import sweep
from barnabas.spark.tables.target import TableError

# Files of this size are not joined; smaller ones are joined up to it.
JOINED_BYTES = 128 << 20


def join_small_files(table: Table, staging: str, partition_by: tuple[str, ...]) -> None:
    groups = list(_groups(table))
    if not groups:
        return
    files: list[DataFile] = []
    for group in groups:
        writer = FileWriter(staging, partition_by, keep_partition_columns=True)
        files += write_files(writer, [_rows(table, group)])
    with table.transaction() as change:
        with change.update_snapshot().overwrite() as replaced:
            for task in chain.from_iterable(groups):
                replaced.delete_data_file(task.file)
        change.add_files([uri_of(f"{staging}/{file.path}") for file in files], check_duplicate_files=False)


def _groups(table: Table) -> Iterator[list[FileScanTask]]:
    """Groups of two or more files of one partition that become one file."""
    open_groups: dict[str, tuple[list[FileScanTask], int]] = {}
    for task in sorted(table.scan().plan_files(), key=lambda task: task.file.file_path):
        size = task.file.file_size_in_bytes
        if size >= JOINED_BYTES or task.delete_files:
            continue
        key = repr(task.file.partition)
        group, total = open_groups.get(key, ([], 0))
        if group and total + size > JOINED_BYTES:
            if len(group) > 1:
                yield group
            group, total = [], 0
        open_groups[key] = ([*group, task], total + size)
    yield from (group for group, _ in open_groups.values() if len(group) > 1)


def _rows(table: Table, group: list[FileScanTask]) -> Any:
    """The rows of files, with the current columns of the table."""
    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    # Files that are added must not contain field ids.
    return scan.to_table(group).cast(schema_to_pyarrow(table.schema(), include_field_ids=False))


def drop_snapshots(table: Table, keep_days: float) -> None:
    limit = datetime.now(UTC) - timedelta(days=keep_days)
    table.maintenance.expire_snapshots().older_than(limit.replace(tzinfo=None)).commit()


def check_place(table: Table, root: Path) -> None:
    """A copy of a table names the files of the original, so the files beside the copy would seem unused."""
    location = Path(path_of(table.location()))
    if location.resolve() != root.resolve():
        raise TableError(
            f"The metadata of the Iceberg table at {root} says that it is at {location}: it was copied or"
            " moved, and is not maintained."
        )


def sweep_files(table: Table, root: Path, keep_days: float) -> int:
    """Remove files of data and metadata that are not used any more; returns how many."""
    named = [path_of(path) for path in _named(table)]
    return sum(sweep(root / folder, "*", named, keep_days) for folder in ("data", "metadata"))


def _named(table: Table) -> Iterator[str]:
    yield table.metadata_location
    yield from (entry.metadata_file for entry in table.metadata.metadata_log)
    yield from (snapshot.manifest_list for snapshot in table.snapshots())
    yield from (statistics.statistics_path for statistics in table.metadata.statistics)
    yield from (statistics.statistics_path for statistics in table.metadata.partition_statistics)
    yield from table.inspect.all_manifests().column("path").to_pylist()
    yield from table.inspect.all_files().column("file_path").to_pylist()
