"""What a table format must be able to do; one module for each format does it."""

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow

from barnabas.spark.tables.files import DataFile
from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.target import Mark, TableError, TableTarget


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
        """All of the files become part of the table at once, with the mark."""

    def upsert(self, rows: Any, deleted: Any, mark: Mark) -> None:
        """Rows replace those of the same key; keys of `deleted` go. All at once, with the mark."""

    def read(self) -> pyarrow.Table: ...

    def count(self) -> int: ...

    def maintain(self, keep_days: float) -> tuple[int, int]:
        """Join small files, let go of old versions, sweep what no version names, as far as the format can.

        Gives the files before and after. What is younger than `keep_days` stays: it may be of a query that
        runs, or of a reader that is slow."""


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
