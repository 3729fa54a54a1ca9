"""What a table format must be able to do. There is one module for each format."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import pyarrow

from barnabas.spark.tables.files import DataFile, FileWriter
from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.maintenance import Maintained
from barnabas.spark.tables.target import Conflict, Mark, TableError, TableTarget
from barnabas.spark.tables.versions import Version

T = TypeVar("T")
# Maintenance and a running query may change a table at the same time, but hardly this often in a row.
ATTEMPTS_MAX = 8
PAUSE_SECONDS_MAX = 1.0


class Store(Protocol):
    """A table in one of the formats. `read()` and `count()` are for readers; the rest is for the sink."""

    # Whether the files of tasks contain the partition columns.
    keeps_partition_columns: bool

    @property
    def staging(self) -> str:
        """The directory for the files of tasks. The table exists."""

    def schema(self) -> pyarrow.Schema | None:
        """The schema of the table; None if there is no table."""

    def widens(self, name: str, narrow: pyarrow.DataType, wide: pyarrow.DataType) -> bool:
        """Whether a column of the table can get a wider type without a change of its files."""

    def prepare(self, fitting: Fitting) -> None:
        """Create the table, or add missing columns to it and widen others."""

    def last_batch(self, query: str) -> int:
        """The last batch of a query in the table, or -1."""

    def append(self, files: Sequence[DataFile], mark: Mark) -> None:
        """Add all files and the mark to the table at once, unless it has the mark already. Raises Conflict if
        the table has changed meanwhile."""

    def version(self) -> Version:
        """The current version of the table, for an upsert."""

    def read(self) -> pyarrow.Table:
        """All rows."""

    def count(self) -> int:
        """How many rows there are."""

    def maintain(self, keep_days: float) -> Maintained:
        """Join small files, remove old versions and remove unused files, as far as the format allows.

        Files that are younger than `keep_days` stay: a running query or a slow reader may need them. Raises
        Conflict if the table has changed meanwhile."""


def store_of(target: TableTarget) -> Store:
    """The store for the format of a target; needs the library of the format."""
    try:
        if target.format == "delta":
            from barnabas.spark.tables.delta import DeltaStore

            return DeltaStore(target)
        if target.format == "iceberg":
            from barnabas.spark.tables.iceberg import IcebergStore

            return IcebergStore(target)
    except ImportError as error:
        raise TableError(
            f"Tables of format {target.format} need libraries: pip install 'barnabas[spark]'."
        ) from error
    from barnabas.spark.tables.parquet import ParquetStore

    return ParquetStore(target)


def append(store: Store, files: Sequence[DataFile], mark: Mark) -> None:
    """Add files to a table; try again after a conflict."""
    patiently(lambda: store.append(files, mark))


def writer_of(store: Store, target: TableTarget) -> FileWriter:
    """A writer for files of the table."""
    return FileWriter(
        store.staging, target.partition_by, keep_partition_columns=store.keeps_partition_columns
    )


def maintain(target: TableTarget, keep_days: float) -> Maintained:
    """Maintain a table, even while a query writes to it; TableError if there is no table."""
    store = store_of(target)
    if store.schema() is None:
        raise TableError(f"There is no {target.format} table at {target.path} yet: run the pipeline first.")
    return patiently(lambda: store.maintain(keep_days))


def patiently(attempt: Callable[[], T]) -> T:
    """Try again after a conflict, with a pause so that the other writer can finish."""
    for number in range(1, ATTEMPTS_MAX):
        try:
            return attempt()
        except Conflict:
            time.sleep(random.uniform(0, PAUSE_SECONDS_MAX * number / ATTEMPTS_MAX))
    return attempt()
