"""How the columns of a query become columns of a table that is there already, so that nothing ever stalls.

A column of the same type goes in as it is, a narrower one is widened; a new one is added to the table. One
whose type the table's cannot hold goes into a column of its own beside it, `<name>__<type>`; the old rows and
the old column stay as they are. Needs pyarrow; touches no files."""

import re
from typing import Any, NamedTuple

import pyarrow

from barnabas.spark.tables.target import TableError

_SIGNED = ("int8", "int16", "int32", "int64")


class Column(NamedTuple):
    """A column of the query, and the one of the table it goes into."""

    name: str
    target: str
    type: pyarrow.DataType


class Fitting(NamedTuple):
    columns: tuple[Column, ...]
    # Fields the table must be given before rows go in.
    added: tuple[pyarrow.Field, ...]

    def fit(self, batch: Any) -> pyarrow.Table:
        """A batch of the query as rows of the table; columns of the table that it lacks are not there."""
        arrays = [batch.column(column.name).cast(column.type) for column in self.columns]
        return pyarrow.table(arrays, names=[column.target for column in self.columns])


def fitting_of(table: pyarrow.Schema | None, query: pyarrow.Schema, *, evolve: bool) -> Fitting:
    """`table` is None where there is none yet: it becomes what the query is."""
    columns: list[Column] = []
    added: list[pyarrow.Field] = []
    known = {} if table is None else {field.name: field.type for field in table}
    for field in query:
        kind = stored_type(field.type)
        target = _target(field.name, kind, known)
        columns.append(Column(field.name, target, known.get(target, kind)))
        if target not in known:
            added.append(pyarrow.field(target, kind))
    if added and table is not None and not evolve:
        names = ", ".join(field.name for field in added)
        raise TableError(
            f"The table has no place for {names}, and is not to evolve: set evolve, or drop them."
        )
    return Fitting(tuple(columns), tuple(added))


def stored_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    """What a type is in a table: times are UTC in microseconds, texts and bytes plain."""
    if pyarrow.types.is_timestamp(kind):
        return pyarrow.timestamp("us", "UTC" if kind.tz is not None else None)
    if pyarrow.types.is_large_string(kind):
        return pyarrow.string()
    if pyarrow.types.is_large_binary(kind):
        return pyarrow.binary()
    return kind


def _target(name: str, kind: pyarrow.DataType, known: dict[str, pyarrow.DataType]) -> str:
    if name not in known or holds(known[name], kind):
        return name
    beside = f"{name}__{re.sub(r'[^a-z0-9]+', '_', str(kind)).strip('_')}"
    return beside


def holds(wide: pyarrow.DataType, narrow: pyarrow.DataType) -> bool:
    """Whether every value of the second type is one of the first."""
    wide, narrow = stored_type(wide), stored_type(narrow)
    if wide.equals(narrow):
        return True
    one, other = str(wide), str(narrow)
    if one in _SIGNED and other in _SIGNED:
        return _SIGNED.index(one) >= _SIGNED.index(other)
    if one == "double":
        return other in ("float", "int8", "int16", "int32")
    return False
