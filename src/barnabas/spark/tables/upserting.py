"""Upserts: the newest row of each key replaces the rows with that key, or removes them.

A file is rewritten only if it holds one of the keys. Rows of new keys go to new files. All files change in
one commit, with the mark of the batch. Small batches on few files are written here; `upsert_tasks` lets
Spark's tasks write the others. Needs pyarrow; reads and writes the files of a table."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy
import pyarrow

from barnabas.spark.tables.bounds import possible_files
from barnabas.spark.tables.files import DataFile, FileWriter
from barnabas.spark.tables.fitting import Fitting, check_placing, fitting_of, newest_of_each_key
from barnabas.spark.tables.rewriting import WRITES, changes_of, insert, positions_of, rewrite
from barnabas.spark.tables.store import Store
from barnabas.spark.tables.target import DELETED, Mark, TableError, TableTarget
from barnabas.spark.tables.versions import StoredFile, Version

# The largest batch that is written in this process, and the largest files that it may read for it.
ROWS_HERE_MAX = 100_000
BYTES_HERE_MAX = 16 << 20
FILE_BYTES_HERE_MAX = 32 << 20


class Upsert(NamedTuple):
    """What to upsert into: a table that exists and has all columns of the batch."""

    store: Store
    target: TableTarget
    fitting: Fitting
    mark: Mark

    def writers(self) -> Callable[[], FileWriter]:
        """Makes writers for files of the table. It can be pickled."""
        return partial(
            FileWriter,
            self.store.staging,
            self.target.partition_by,
            keep_partition_columns=self.store.keeps_partition_columns,
        )

    def is_done(self, version: Version) -> bool:
        """Whether the table has the batch already."""
        return version.last_batch(self.mark.query) >= self.mark.batch


def upsert_into(store: Store, target: TableTarget, rows: pyarrow.Schema, mark: Mark) -> Upsert:
    """Create the table or add missing columns to it; `rows` is the schema of the batch."""
    missing = [name for name in (*target.key, target.order_by) if name and name not in rows.names]
    if missing:
        raise TableError(
            f"The rows for {target.path} have no column {missing[0]}; they have {', '.join(rows.names)}."
        )
    own = pyarrow.schema([field for field in rows if field.name != DELETED])
    fitting = fitting_of(store.schema(), own, evolve=target.evolve, widens=store.widens)
    check_placing(fitting, target)
    store.prepare(fitting)
    return Upsert(store, target, fitting, mark)


def fits_here(rows: int, size: int) -> bool:
    """Whether a batch is small enough to be written in this process."""
    return rows <= ROWS_HERE_MAX and size <= BYTES_HERE_MAX


def upsert_here(upsert: Upsert, batch: pyarrow.Table) -> bool:
    """Upsert a small batch in this process; False, and nothing is done, if the files are too large for that.

    Raises Conflict if the table has changed meanwhile."""
    version = upsert.store.version()
    if upsert.is_done(version):
        return True
    changes = _changes(upsert, batch)
    keys = changes.select(list(upsert.target.key))
    files = [version.files[number] for number in possible_files(version.files, keys)]
    if sum(file.size for file in files) > FILE_BYTES_HERE_MAX:
        return False
    removed, added = _rewritten(upsert, version, files, changes)
    version.replace(removed, added, upsert.mark)
    return True


def _changes(upsert: Upsert, batch: pyarrow.Table) -> pyarrow.Table:
    """The newest row of each key, as a row of the table, and whether it is written."""
    newest = newest_of_each_key(batch, upsert.target)
    writes = numpy.ones(newest.num_rows, dtype=bool)
    if DELETED in newest.column_names:
        writes = ~newest.column(DELETED).fill_null(False).to_numpy()
    return upsert.fitting.fit(newest).append_column(WRITES, pyarrow.array(writes))


def _rewritten(
    upsert: Upsert, version: Version, files: Sequence[StoredFile], changes: pyarrow.Table
) -> tuple[list[StoredFile], list[DataFile]]:
    """The files that are removed and those that take their place."""
    rows, writes = changes.drop_columns([WRITES]), changes.column(WRITES).to_numpy()
    reader, new_writer = version.reader(files), upsert.writers()
    removed: list[StoredFile] = []
    added: list[DataFile] = []
    for file in files:
        places, numbers = _places(reader.batches(file.path, upsert.target.key), rows, upsert.target)
        if len(places) == 0:
            continue
        # If a key is in the table several times, its row is written only once.
        _, firsts = numpy.unique(numbers, return_index=True)
        first = numpy.zeros(len(numbers), dtype=bool)
        first[firsts] = True
        found = changes_of(
            rows.take(pyarrow.array(numbers)), pyarrow.array(places), pyarrow.array(writes[numbers] & first)
        )
        writes[numbers] = False
        writer = new_writer()
        rewrite(reader, file.path, version.schema, [found], writer.write)
        removed.append(file)
        added += writer.close()
    writer = new_writer()
    none = pyarrow.nulls(rows.num_rows, pyarrow.int64())
    insert(version.schema, [changes_of(rows, none, pyarrow.array(writes))], writer.write)
    return removed, added + writer.close()


def _places(stored: Any, rows: pyarrow.Table, target: TableTarget) -> tuple[Any, Any]:
    """Where keys of the rows are in a file: their positions, and the numbers of the rows."""
    batches = list(stored)
    if not batches:
        return numpy.empty(0, numpy.int64), numpy.empty(0, numpy.int64)
    numbers = positions_of(rows.select(list(target.key)), pyarrow.Table.from_batches(batches))
    valid = numbers.is_valid().to_numpy(zero_copy_only=False)
    return numpy.flatnonzero(valid), numbers.filter(pyarrow.array(valid)).to_numpy().astype(numpy.int64)
