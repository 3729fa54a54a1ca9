"""What a table format must be able to do; one module for each format does it."""

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
# Maintenance and a query that runs may meet; so often in a row they do not, unless batches take no time.
ATTEMPTS_MAX = 8
PAUSE_SECONDS_MAX = 1.0


class Store(Protocol):
    # Where tasks put their files, and whether those have the columns that directories are named by.
    staging: str
    keeps_partition_columns: bool

    def schema(self) -> pyarrow.Schema | None:
        """Of the table as it is; None where there is none."""

    def prepare(self, fitting: Fitting) -> None:
        """Make the table, or give it the columns it lacks."""

    def last_batch(self, query: str) -> int:
        """The last batch of a query that is in the table; -1 where none is."""

    def append(self, files: Sequence[DataFile], mark: Mark) -> None:
        """All of the files become part of the table at once, with the mark, unless that is there already.
        Conflict where the table changed since it was looked up."""

    def upsert(self, rows: Any, deleted: Any, mark: Mark) -> None:
        """Rows replace those of the same key; keys of `deleted` go. All at once, with the mark, as above."""

    def read(self) -> pyarrow.Table: ...

    def count(self) -> int: ...

    def maintain(self, keep_days: float) -> Maintained:
        """Join small files, let go of old versions, sweep what no version names, as far as the format can.

        What is younger than `keep_days` stays: it may be of a query that runs, or of a reader that is slow.
        Conflict where the table changed meanwhile."""


def store_of(target: TableTarget) -> Store:
    """The store of a target's format; needs the library of that format."""
    try:
        if target.format == "delta":
            from barnabas.spark.tables.delta import DeltaStore

            return DeltaStore(target)
        if target.format == "iceberg":
            from barnabas.spark.tables.iceberg import IcebergStore

            return IcebergStore(target)
    except ImportError as error:
        raise TableError(
            f"Tables of {target.format} need libraries: pip install 'barnabas[spark]'."
        ) from error
    from barnabas.spark.tables.parquet import ParquetStore

    return ParquetStore(target)


def append(store: Store, files: Sequence[DataFile], mark: Mark) -> None:
    """Take files into a table, as often as somebody else is faster."""
    _patiently(lambda: store.append(files, mark))


def upsert(store: Store, rows: Any, deleted: Any, mark: Mark) -> None:
    """Take rows into a table, as often as somebody else is faster."""
    _patiently(lambda: store.upsert(rows, deleted, mark))


def maintain(target: TableTarget, keep_days: float) -> Maintained:
    """Look after a table, also while a query writes into it; TableError where there is none."""
    store = store_of(target)
    if store.schema() is None:
        raise TableError(f"There is no {target.format} table at {target.path} yet: run the pipeline first.")
    return _patiently(lambda: store.maintain(keep_days))


def _patiently(attempt: Callable[[], T]) -> T:
    """Try again where somebody else has changed the table, who is then given time to change it once more."""
    for number in range(1, ATTEMPTS_MAX):
        try:
            return attempt()
        except Conflict:
            time.sleep(random.uniform(0, PAUSE_SECONDS_MAX * number / ATTEMPTS_MAX))
    return attempt()
