"""How rows of a query become rows of an existing table: their columns, and the newest row of each key.

A column of the same type is written as it is, a narrower one is widened, and a new one is added to the table.
If a column has a wider type than the table's, the table's column gets it too, where the format allows that.
If a column's type does not fit the table's column, it is written to another column, `<name>__<type>`; the old
rows and the old column do not change. So a query never stops because of a type. Needs pyarrow; touches no
files."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow
import pyarrow.compute as compute

from barnabas.spark.tables.target import TableError, TableTarget

ROW = "__row"
_SIGNED = ("int8", "int16", "int32", "int64")
# Whether a format can give a column of a table a wider type: its name, its type and the wider one.
Widens = Callable[[str, pyarrow.DataType, pyarrow.DataType], bool]


class Column(NamedTuple):
    """A column of the query, and the column of the table it is written to."""

    name: str
    target: str
    type: pyarrow.DataType


class Fitting(NamedTuple):
    columns: tuple[Column, ...]
    # Fields that the table needs before rows are written.
    added: tuple[pyarrow.Field, ...]
    # Fields of the table that need another, wider type before rows are written.
    widened: tuple[pyarrow.Field, ...] = ()

    def fit(self, batch: Any) -> pyarrow.Table:
        """A batch of the query as rows of the table, without the columns that the query does not have."""
        arrays = [batch.column(column.name).cast(column.type) for column in self.columns]
        return pyarrow.table(arrays, names=[column.target for column in self.columns])


def never(name: str, narrow: pyarrow.DataType, wide: pyarrow.DataType) -> bool:
    """For formats whose columns keep their types."""
    return False


def fitting_of(
    table: pyarrow.Schema | None, query: pyarrow.Schema, *, evolve: bool, widens: Widens = never
) -> Fitting:
    """`table` is None if there is no table yet: it gets the columns of the query."""
    columns: list[Column] = []
    added: list[pyarrow.Field] = []
    known = {} if table is None else {field.name: field.type for field in table}
    widened = [
        pyarrow.field(field.name, stored_type(field.type))
        for field in query
        if evolve and field.name in known and _is_widened(field, known, widens)
    ]
    known |= {field.name: field.type for field in widened}
    for field in query:
        kind = stored_type(field.type)
        target = _target(field.name, kind, known)
        columns.append(Column(field.name, target, known.get(target, kind)))
        if target not in known:
            added.append(pyarrow.field(target, kind))
    if added and table is not None and not evolve:
        names = ", ".join(field.name for field in added)
        raise TableError(
            f"The table has no column for {names}, and evolve is false: set evolve to true, or drop them."
        )
    return Fitting(tuple(columns), tuple(added), tuple(widened))


def check_placing(fitting: Fitting, target: TableTarget) -> None:
    """Keys and partition columns say which rows and files are changed: no other column may replace them."""
    for column in fitting.columns:
        if column.target == column.name:
            continue
        if column.name in target.key:
            what = "key"
        elif column.name in target.partition_by:
            what = "partition column"
        else:
            continue
        raise TableError(
            f"The {what} {column.name} of the rows for {target.path} has the type {column.type}, which does"
            " not fit the table: convert it in a step."
        )


def stored_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    """The type in a table, also inside of other types: timestamps are in microseconds and UTC; large strings,
    bytes and lists become normal ones."""
    if pyarrow.types.is_timestamp(kind):
        return pyarrow.timestamp("us", "UTC" if kind.tz is not None else None)
    if pyarrow.types.is_large_string(kind):
        return pyarrow.string()
    if pyarrow.types.is_large_binary(kind):
        return pyarrow.binary()
    if pyarrow.types.is_struct(kind):
        return pyarrow.struct([(field.name, stored_type(field.type)) for field in kind])
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
        return pyarrow.list_(stored_type(kind.value_type))
    if pyarrow.types.is_map(kind):
        return pyarrow.map_(stored_type(kind.key_type), stored_type(kind.item_type))
    return kind


def _target(name: str, kind: pyarrow.DataType, known: dict[str, pyarrow.DataType]) -> str:
    return name if name not in known or holds(known[name], kind) else _beside(name, kind)


def _beside(name: str, kind: pyarrow.DataType) -> str:
    """The column for values of a type that does not fit the column of this name."""
    return f"{name}__{re.sub(r'[^a-z0-9]+', '_', str(kind)).strip('_')}"


def _is_widened(field: pyarrow.Field, known: dict[str, pyarrow.DataType], widens: Widens) -> bool:
    """Whether the table's column gets the type of the field. If such values have a column of their own
    since earlier runs, they stay there."""
    narrow, wide = known[field.name], stored_type(field.type)
    fits = holds(narrow, wide) or not holds(wide, narrow) or _beside(field.name, wide) in known
    return not fits and widens(field.name, narrow, wide)


def holds(wide: pyarrow.DataType, narrow: pyarrow.DataType) -> bool:
    """Whether every value of the second type is also a value of the first."""
    wide, narrow = stored_type(wide), stored_type(narrow)
    if wide.equals(narrow):
        return True
    one, other = str(wide), str(narrow)
    if one in _SIGNED and other in _SIGNED:
        return _SIGNED.index(one) >= _SIGNED.index(other)
    if one == "double":
        return other in ("float", "int8", "int16", "int32")
    return False


def newest_of_each_key(rows: Any, target: TableTarget) -> Any:
    """For each key the row with the largest `order_by`, or the last of those that are equal. A null is
    smaller than all values, as in Spark."""
    if target.order_by is not None:
        is_null = rows.column(target.order_by).is_null()
        # Sorting is stable: equal rows stay in their order.
        filled = rows.filter(compute.invert(is_null)).sort_by([(target.order_by, "ascending")])
        rows = pyarrow.concat_tables([rows.filter(is_null), filled])
    numbered = rows.append_column(ROW, pyarrow.array(range(rows.num_rows), pyarrow.int64()))
    last = numbered.group_by(list(target.key)).aggregate([(ROW, "max")])
    return rows.take(last.column(f"{ROW}_max").combine_chunks().sort())
