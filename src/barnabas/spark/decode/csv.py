"""CSV values as columns: a value is one line, whose fields are the columns in order.

Each value is split alone, so a value with an open quote cannot affect the next one; then each column is
converted at once. A field may be quoted, with a quote doubled inside; an empty field is null. A value is bad
if it has more than one line, another number of fields than the schema has columns, or a field that is not of
the type of its column. Times are ISO 8601, in UTC unless they say otherwise."""

import csv
from importlib import import_module
from typing import Any

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType

from barnabas.spark.decode.projection import Payload
from barnabas.spark.options import OptionError

_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)$"


def check_payload(payload: StructType) -> None:
    """Raise OptionError if a column has a type that a field of CSV cannot have."""
    if not payload.fields:
        raise OptionError("decode=csv needs a schema with at least one column of the value.")
    for field in payload.fields:
        if isinstance(field.dataType, ArrayType | BinaryType | MapType | StructType):
            raise OptionError(
                f"The column {field.name} has the type {field.dataType.simpleString()}, which cannot be read"
                " from CSV: read it as string."
            )


class CsvDecoder:
    def __init__(self, delimiter: str, payload: StructType) -> None:
        self._arrow = import_module("pyarrow")
        self._compute = import_module("pyarrow.compute")
        self._delimiter = delimiter
        self._schema = to_arrow_schema(payload, timezone="UTC")

    def decode(self, values: Any) -> Payload:
        width = len(self._schema)
        nothing: list[str | None] = [None] * width
        rows: list[list[str | None]] = []
        errors: dict[int, str] = {}
        for row, value in enumerate(values.to_pylist()):
            try:
                rows.append(nothing if value is None else self._fields(value, width))
            except (csv.Error, ValueError) as error:
                rows.append(nothing)
                errors[row] = str(error)
        columns = [
            self._column(field, [fields[number] for fields in rows], errors)
            for number, field in enumerate(self._schema)
        ]
        table = self._arrow.Table.from_arrays(columns, schema=self._schema)
        return Payload(table, errors)

    def _fields(self, value: bytes, width: int) -> list[str | None]:
        try:
            text = value.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"it is not UTF-8: {error}") from error
        lines = list(csv.reader([text], delimiter=self._delimiter, strict=True))
        if len(lines) != 1:
            raise ValueError("it is not one line of CSV")
        if len(lines[0]) != width:
            raise ValueError(f"it has {len(lines[0])} fields, but the schema has {width} columns")
        return [field or None for field in lines[0]]

    def _column(self, field: Any, texts: list[str | None], errors: dict[int, str]) -> Any:
        try:
            return self._converted(texts, field.type)
        except self._arrow.ArrowException:
            # At least one text does not fit: try each alone to find the bad ones.
            for row, text in enumerate(texts):
                try:
                    self._converted([text], field.type)
                except self._arrow.ArrowException as error:
                    texts[row] = None
                    errors.setdefault(row, f"{field.name}: {error}")
            return self._converted(texts, field.type)

    def _converted(self, texts: list[str | None], kind: Any) -> Any:
        column = self._arrow.array(texts, self._arrow.string())
        if self._arrow.types.is_timestamp(kind) and kind.tz is not None:
            has_zone = self._compute.match_substring_regex(column, _ZONE)
            with_zone = self._compute.binary_join_element_wise(column, "Z", "")
            column = self._compute.if_else(has_zone, column, with_zone)
        return column.cast(kind)
