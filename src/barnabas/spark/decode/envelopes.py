"""Changes of a database as Debezium sends them: the row after the change, or before it if it was deleted.

A value has the fields `before`, `after` and `op`, or has them in the field `payload`, as Kafka Connect
writes JSON with schemas. The column `_deleted` is true if the row was deleted. A null value, which Debezium
sends after a deletion so that the topic can be compacted, makes no row."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from barnabas.spark.columns import DELETED
from barnabas.spark.decode.projection import Decoder, Payload
from barnabas.spark.options import OptionError
from barnabas.spark.settings import Decoding

DELETE = "d"
# Created, updated, deleted, and read in the first snapshot.
OPERATIONS = ("c", "u", DELETE, "r")


def deleted_column(decoding: Decoding) -> str:
    return decoding.prefix + DELETED


def row_schema(decoding: Decoding, envelope: StructType) -> StructType:
    """The columns of the rows in an envelope whose schema is known, and `_deleted`."""
    after = envelope["after"].dataType if "after" in envelope.fieldNames() else None
    if not isinstance(after, StructType):
        raise OptionError(
            "The schema of the values has no record `after`, so they are not Debezium's: remove envelope."
        )
    return StructType([*after.fields, StructField(deleted_column(decoding), BooleanType())])


class DebeziumDecoder:
    """`decoder` makes the decoder of the envelopes from their schema."""

    def __init__(
        self, decoding: Decoding, decoder: Callable[[StructType], Decoder], payload: StructType
    ) -> None:
        self._arrow = import_module("pyarrow")
        self._compute = import_module("pyarrow.compute")
        self._deleted = deleted_column(decoding)
        row = StructType([field for field in payload.fields if field.name != self._deleted])
        change = StructType(
            [StructField("before", row), StructField("after", row), StructField("op", StringType())]
        )
        self._row = to_arrow_schema(row, timezone="UTC")
        self._inner = decoder(StructType([*change.fields, StructField("payload", change)]))

    def decode(self, values: Any) -> Payload:
        inner = self._inner.decode(values)
        table = inner.table.combine_chunks()
        plain = [self._flat(table.column(name)) for name in ("before", "after", "op")]
        within = self._flat(table.column("payload")).flatten()
        before, after, operation = (
            self._merged(one, other) for one, other in zip(plain, within, strict=True)
        )
        is_deleted = self._compute.fill_null(self._compute.equal(operation, DELETE), False)
        errors = dict(inner.errors)
        errors.update(self._mistakes(values, errors, operation, (before, after)))
        arrays = [
            self._compute.if_else(is_deleted, one, other)
            for one, other in zip(before.flatten(), after.flatten(), strict=True)
        ]
        rows = self._arrow.Table.from_arrays(arrays, schema=self._row)
        skipped = frozenset(row for row, value in enumerate(values.is_null().to_pylist()) if value)
        return Payload(rows.append_column(self._deleted, is_deleted), errors, skipped)

    def _merged(self, one: Any, other: Any) -> Any:
        return self._compute.if_else(one.is_valid(), one, other)

    def _flat(self, column: Any) -> Any:
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    def _mistakes(
        self, values: Any, errors: dict[int, str], operation: Any, rows: tuple[Any, Any]
    ) -> dict[int, str]:
        before, after = (row.is_valid().to_pylist() for row in rows)
        found: dict[int, str] = {}
        for row, (op, value_is_valid) in enumerate(
            zip(operation.to_pylist(), values.is_valid().to_pylist(), strict=True)
        ):
            if not value_is_valid or row in errors:
                continue
            if op not in OPERATIONS:
                found[row] = f"it is not a change of a row: its op is {op!r}"
            elif op == DELETE and not before[row]:
                found[row] = "it deletes a row, but has no `before`: set the table's REPLICA IDENTITY"
            elif op != DELETE and not after[row]:
                found[row] = "it has no `after`"
        return found
