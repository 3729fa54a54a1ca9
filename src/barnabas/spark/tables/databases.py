"""Tables of databases through SQLAlchemy, so with any of its drivers for Python and without one for Java.

A batch is written in one transaction that also stores the mark of the query, in the table
`barnabas_batches`. So a batch that Spark runs again is not written again."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow
import sqlalchemy
from sqlalchemy import types

from barnabas.spark.tables.origin import TableOrigin
from barnabas.spark.tables.target import DELETED, Mark, TableError

ROWS_PER_READ = ROWS_PER_STATEMENT = 10_000
MARKS = "barnabas_batches"
_KINDS: tuple[tuple[type[types.TypeEngine[Any]], pyarrow.DataType], ...] = (
    (types.Boolean, pyarrow.bool_()),
    (types.SmallInteger, pyarrow.int32()),
    (types.Integer, pyarrow.int64()),
    (types.Float, pyarrow.float64()),
    (types.Date, pyarrow.date32()),
    (types.DateTime, pyarrow.timestamp("us", "UTC")),
    (types.LargeBinary, pyarrow.binary()),
)


@contextmanager
def connected(url: str) -> Iterator[sqlalchemy.Connection]:
    """A connection in a transaction, which is committed at the end."""
    try:
        engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    except (sqlalchemy.exc.ArgumentError, sqlalchemy.exc.NoSuchModuleError, ImportError) as error:
        raise TableError(
            f"The URL of a database cannot be used: {error}. It must be one of SQLAlchemy, such as"
            " postgresql+psycopg://user:password@host/name, and its driver must be installed."
        ) from error
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def reflected(connection: sqlalchemy.Connection, name: str) -> sqlalchemy.Table:
    """The table of a name such as orders or shop.orders."""
    schema, _, table = name.rpartition(".")
    try:
        return sqlalchemy.Table(table, sqlalchemy.MetaData(), schema=schema or None, autoload_with=connection)
    except sqlalchemy.exc.NoSuchTableError as error:
        raise TableError(f"The database has no table {name}: create it first.") from error


class DatabaseVersion:
    """A table or query as it is now: it is read in one piece."""

    def __init__(self, origin: TableOrigin) -> None:
        self._origin = origin

    @property
    def schema(self) -> pyarrow.Schema:
        if self._origin.query:
            raise TableError("The columns of a query of a database are not known: give a schema.")
        with connected(self._origin.url) as connection:
            columns = reflected(connection, self._origin.table).columns
            return pyarrow.schema([(column.name, _arrow_type(column.type)) for column in columns])

    def parts(self) -> list[Any]:
        return [None]

    def read(self, part: Any) -> Iterator[pyarrow.RecordBatch]:
        with connected(self._origin.url) as connection:
            statement: Any = sqlalchemy.text(self._origin.query)
            if self._origin.table:
                statement = sqlalchemy.select(reflected(connection, self._origin.table))
            rows = connection.execution_options(yield_per=ROWS_PER_READ).execute(statement)
            names = list(rows.keys())
            for portion in rows.partitions():
                columns = zip(*portion, strict=True)
                yield pyarrow.RecordBatch.from_arrays(
                    [pyarrow.array(list(column)) for column in columns], names=names
                )


def _arrow_type(kind: types.TypeEngine[Any]) -> pyarrow.DataType:
    if isinstance(kind, types.Numeric) and not isinstance(kind, types.Float):
        return pyarrow.decimal128(kind.precision or 38, kind.scale or 0)
    return next((arrow for known, arrow in _KINDS if isinstance(kind, known)), pyarrow.string())


def write_rows(url: str, table: str, key: Sequence[str], rows: pyarrow.Table, mark: Mark) -> None:
    """Write the rows of a batch and its mark in one transaction, unless the database has the mark. With a
    key, rows replace those with the same key, and rows whose column `_deleted` is true only remove them."""
    columns = [name for name in rows.column_names if name != DELETED]
    with connected(url) as connection:
        marks = _marks(connection)
        stored = connection.execute(
            sqlalchemy.select(marks.c.batch).where(marks.c.query == mark.query, marks.c.target == table)
        ).scalar()
        if stored is not None and stored >= mark.batch:
            return
        target = reflected(connection, table)
        _check_columns(target, (*key, *columns))
        for batch in rows.to_batches(max_chunksize=ROWS_PER_STATEMENT):
            portion = batch.to_pylist()
            if key:
                _remove(connection, target, key, portion)
            kept = [{name: row[name] for name in columns} for row in portion if not row.get(DELETED)]
            if kept:
                connection.execute(target.insert(), kept)
        where = (marks.c.query == mark.query) & (marks.c.target == table)
        connection.execute(marks.delete().where(where))
        connection.execute(marks.insert().values(query=mark.query, target=table, batch=mark.batch))


def _marks(connection: sqlalchemy.Connection) -> sqlalchemy.Table:
    marks = sqlalchemy.Table(
        MARKS,
        sqlalchemy.MetaData(),
        sqlalchemy.Column("query", types.String(255), primary_key=True),
        sqlalchemy.Column("target", types.String(255), primary_key=True),
        sqlalchemy.Column("batch", types.BigInteger, nullable=False),
    )
    marks.create(connection, checkfirst=True)
    return marks


def _remove(
    connection: sqlalchemy.Connection,
    target: sqlalchemy.Table,
    key: Sequence[str],
    rows: list[dict[str, Any]],
) -> None:
    same = sqlalchemy.and_(*[target.c[name] == sqlalchemy.bindparam(f"key_{name}") for name in key])
    connection.execute(
        target.delete().where(same), [{f"key_{name}": row[name] for name in key} for row in rows]
    )


def _check_columns(target: sqlalchemy.Table, names: Iterable[str]) -> None:
    missing = [name for name in names if name not in target.c]
    if missing:
        raise TableError(
            f"The table {target.name} has no column {', '.join(missing)}: add it, or do not select it in the"
            " step before the sink."
        )
