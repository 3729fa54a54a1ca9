"""Appends frames of one batch to several tables in one job: its tasks get the rows of all, and write files of
all tables. Then the driver adds the files to each table, with the mark of the batch.

A process that dies in between leaves tables without the batch. When the batch runs again, those that have the
mark ignore their new files."""

import pickle
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow
from pyspark.sql import DataFrame

from barnabas.spark.row_wise import Part, RowWise, together
from barnabas.spark.tables.files import DataFile
from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.sink import file_writer, prepared
from barnabas.spark.tables.store import append, store_of
from barnabas.spark.tables.target import Mark, TableTarget

Batches = Iterator[pyarrow.RecordBatch]


class Append(NamedTuple):
    """A frame for a table; `rows` says how it is computed."""

    frame: DataFrame
    rows: RowWise
    target: TableTarget
    mark: Mark


def append_together(batch: DataFrame, appends: Sequence[Append]) -> None:
    rows, parts = together(batch, [each.rows for each in appends])
    tables = [
        Appended(part, prepared(each.target, each.frame.schema), each.target)
        for each, part in zip(appends, parts, strict=True)
    ]
    files: list[list[DataFile]] = [[] for _ in appends]
    for row in rows.mapInArrow(Appending(tables), "files binary").collect():
        for found, added in zip(files, pickle.loads(row["files"]), strict=True):
            found += added
    for each, added in zip(appends, files, strict=True):
        append(store_of(each.target), added, each.mark)


class Appended(NamedTuple):
    """A table, and which of the rows it gets."""

    part: Part
    fitting: Fitting
    target: TableTarget

    def rows(self, batch: pyarrow.RecordBatch) -> pyarrow.Table:
        arrays = [batch.column(name) for name in self.part.columns.values()]
        rows = pyarrow.RecordBatch.from_arrays(arrays, names=list(self.part.columns))
        if self.part.mask is not None:
            rows = rows.filter(batch.column(self.part.mask))
        return self.fitting.fit(rows)


class Appending:
    """In a task: writes files of all tables."""

    def __init__(self, tables: Sequence[Appended]) -> None:
        self._tables = tables

    def __call__(self, batches: Batches) -> Batches:
        writers = [file_writer(table.target) for table in self._tables]
        for batch in batches:
            for table, writer in zip(self._tables, writers, strict=True):
                writer.write(table.rows(batch))
        files = [writer.close() for writer in writers]
        yield pyarrow.RecordBatch.from_pydict({"files": [pickle.dumps(files)]})
