"""What a table format must be able to do. There is one module for each format."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import pyarrow

from barnabas.spark.tables.files import DataFile
from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.maintenance import Maintained
from barnabas.spark.tables.target import Conflict, Mark, TableError, TableTarget

T = TypeVar("T")
# Maintenance and a running query may change a table at the same time, but hardly this often in a row.
ATTEMPTS_MAX = 8
PAUSE_SECONDS_MAX = 1.0


class Store(Protocol):
    # The directory for the files of tasks, and whether these contain the partition columns.
    staging: str
    keeps_partition_columns: bool

    def schema(self) -> pyarrow.Schema | None:
        """The schema of the table; None if there is no table."""

    def prepare(self, fitting: Fitting) -> None:
        """Create the table, or add missing columns to it."""

    def last_batch(self, query: str) -> int:
        """The last batch of a query in the table, or -1."""

    def append(self, files: Sequence[DataFile], mark: Mark) -> None:
        """Add all files and the mark to the table at once, unless it has the mark already. Raises Conflict if
        the table has changed meanwhile."""

    def upsert(self, rows: Any, deleted: Any, mark: Mark) -> None:
        """Replace the rows with the same keys and remove the keys in `deleted`, at once, with the mark, as in
        append()."""

    def read(self) -> pyarrow.Table: ...

    def count(self) -> int: ...

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
    _patiently(lambda: store.append(files, mark))


def upsert(store: Store, rows: Any, deleted: Any, mark: Mark) -> None:
    """Upsert rows into a table; try again after a conflict."""
    _patiently(lambda: store.upsert(rows, deleted, mark))


def maintain(target: TableTarget, keep_days: float) -> Maintained:
    """Maintain a table, even while a query writes to it; TableError if there is no table."""
    store = store_of(target)
    if store.schema() is None:
        raise TableError(f"There is no {target.format} table at {target.path} yet: run the pipeline first.")
    return _patiently(lambda: store.maintain(keep_days))


def _patiently(attempt: Callable[[], T]) -> T:
    """Try again after a conflict, with a pause so that the other writer can finish."""
    for number in range(1, ATTEMPTS_MAX):
        try:
            return attempt()
        except Conflict:
            time.sleep(random.uniform(0, PAUSE_SECONDS_MAX * number / ATTEMPTS_MAX))
    return attempt()
