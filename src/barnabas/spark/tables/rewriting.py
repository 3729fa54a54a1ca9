"""Rewrites a file of a table: some rows are left out, and new rows take their places.

A change is a row with its position in the file, whether it is written, and its values. Batches of changes are
in the order of their positions. Only a few batches of rows are in memory at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy
import pyarrow
import pyarrow.compute as compute

from barnabas.spark.tables.versions import FileReader

POSITION = "__position"
WRITES = "__writes"
Write = Callable[[pyarrow.Table], None]


def positions_of(keys: pyarrow.Table, stored: pyarrow.Table) -> pyarrow.Array:
    """For each stored key the number of the same key in `keys`, or null. Null equals null."""
    wanted, found = None, None
    for name in keys.column_names:
        column = keys.column(name).combine_chunks()
        values = compute.unique(column)
        of_keys = compute.index_in(column, values)
        of_stored = compute.index_in(stored.column(name).combine_chunks().cast(column.type), values)
        if wanted is not None and found is not None:
            # A pair of numbers becomes one number. Then small numbers are assigned again, so that the next
            # pair does not overflow.
            size = len(values)
            pairs = compute.add(compute.multiply(_long(wanted), size), _long(of_keys))
            stored_pairs = compute.add(compute.multiply(_long(found), size), _long(of_stored))
            distinct = compute.unique(pairs)
            of_keys = compute.index_in(pairs, distinct)
            of_stored = _index_in(stored_pairs, distinct)
        wanted, found = of_keys, of_stored
    return _index_in(found, wanted)


def _long(values: pyarrow.Array) -> pyarrow.Array:
    return values.cast(pyarrow.int64())


def _index_in(values: pyarrow.Array, among: pyarrow.Array) -> pyarrow.Array:
    """Here a null means that a key was not found."""
    return compute.index_in(values, among, skip_nulls=True)


def changes_of(rows: pyarrow.Table, positions: pyarrow.Array, writes: pyarrow.Array) -> pyarrow.Table:
    return rows.append_column(POSITION, positions).append_column(WRITES, writes)


def rewrite(
    reader: FileReader,
    path: str,
    schema: pyarrow.Schema,
    changes: Iterable[pyarrow.Table],
    write: Write,
) -> None:
    """Write the rows of a file without those that are changed, and the changes that are to be written.

    A column that the changes do not have keeps its value."""
    upcoming = _Upcoming(changes)
    start = 0
    for batch in reader.batches(path, schema.names):
        kept = numpy.ones(batch.num_rows, dtype=bool)
        for change in upcoming.before(start + batch.num_rows):
            places = change.column(POSITION).to_numpy() - start
            kept[places] = False
            written = change.filter(change.column(WRITES))
            old = pyarrow.table(batch).take(pyarrow.array(written.column(POSITION).to_numpy() - start))
            write(complete(written, schema, old))
        write(pyarrow.table(batch).filter(pyarrow.array(kept)))
        start += batch.num_rows


def insert(schema: pyarrow.Schema, changes: Iterable[pyarrow.Table], write: Write) -> None:
    """Write rows that are in no file yet."""
    for change in changes:
        write(complete(change.filter(change.column(WRITES)), schema, None))


def complete(rows: pyarrow.Table, schema: pyarrow.Schema, old: pyarrow.Table | None) -> pyarrow.Table:
    """The rows with all columns of the table. Columns that they do not have come from the old rows, or are
    null."""
    arrays = []
    for field in schema:
        if field.name in rows.column_names:
            arrays.append(rows.column(field.name).cast(field.type))
        elif old is not None:
            arrays.append(old.column(field.name).cast(field.type))
        else:
            arrays.append(pyarrow.chunked_array([pyarrow.nulls(rows.num_rows, field.type)]))
    return pyarrow.table(arrays, schema=schema)


class _Upcoming:
    """Changes that are read as far as they are needed."""

    def __init__(self, changes: Iterable[pyarrow.Table]) -> None:
        self._rest: Iterator[pyarrow.Table] = iter(changes)
        self._current: pyarrow.Table | None = next(self._rest, None)

    def before(self, end: int) -> Iterator[pyarrow.Table]:
        """The changes at positions before `end`."""
        while self._current is not None:
            count = int(numpy.searchsorted(self._current.column(POSITION).to_numpy(), end))
            if count:
                yield self._current.slice(0, count)
            if count < self._current.num_rows:
                self._current = self._current.slice(count)
                return
            self._current = next(self._rest, None)


def by_file(batches: Iterable[pyarrow.Table], column: str) -> Iterator[tuple[int, pyarrow.Table]]:
    """Parts of batches that belong to one file each; the rows are in the order of this column."""
    for batch in batches:
        numbers = batch.column(column).to_numpy()
        edges: Sequence[int] = [0, *(numpy.flatnonzero(numpy.diff(numbers)) + 1).tolist(), len(numbers)]
        for first, last in pairwise(edges):
            if last > first:
                yield int(numbers[first]), batch.slice(first, last - first).drop_columns([column])
