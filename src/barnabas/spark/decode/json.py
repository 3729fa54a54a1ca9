"""JSON values as columns, by Arrow's reader: a batch of values at a time, and exact for each value.

All values of a batch are read as one text. That must give what reading each alone gives: each value has to be
one whole object. A value that begins with { and ends with }, followed by a line feed and another that begins
with {, cannot go on in the next: what is open after a } is an object or array that wants a comma, or a
string, in which a line feed is not allowed. So a text of such values that can be read, with as many rows as
values, was cut where the values are. Where it cannot be read, halves are tried, down to the values that are
at fault.

A value is bad where it is no object, where a field is no value of its column's type (numbers are no strings,
and 1.0 is no integer), or where a field comes twice. Fields without a column are passed over. Times are ISO
8601 strings, in UTC where they say nothing else."""

from importlib import import_module
from typing import Any

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType

from barnabas.spark.decode.projection import Payload
from barnabas.spark.options import OptionError

_SPACE = b" \t\r\n"
_NO_OBJECT = "it is no JSON object"


def check_payload(payload: StructType) -> None:
    """OptionError where a column is of a type that JSON values are not read as."""
    if not payload.fields:
        raise OptionError("decode=json is given, and the schema has no column of the value.")
    for field in payload.fields:
        _check_type(field.name, field.dataType)


def _check_type(name: str, kind: DataType) -> None:
    if isinstance(kind, MapType | BinaryType):
        raise OptionError(
            f"The column {name} is {kind.simpleString()}, which JSON is not read as here: use a struct or"
            " string, or"
            " read the column value and from_json."
        )
    if isinstance(kind, ArrayType):
        _check_type(f"{name}[]", kind.elementType)
    if isinstance(kind, StructType):
        for field in kind.fields:
            _check_type(f"{name}.{field.name}", field.dataType)


class JsonDecoder:
    def __init__(self, payload: StructType) -> None:
        self._arrow = import_module("pyarrow")
        self._json = import_module("pyarrow.json")
        self._compute = import_module("pyarrow.compute")
        self._schema = to_arrow_schema(payload, timezone="UTC")
        read = self._arrow.schema([(field.name, self._read_as(field.type)) for field in self._schema])
        self._has_casts = read != self._schema
        self._options = self._json.ParseOptions(
            explicit_schema=read, newlines_in_values=True, unexpected_field_behavior="ignore"
        )

    def decode(self, values: Any) -> Payload:
        rows, errors = self._candidates(values)
        texts = (
            values if len(rows) == len(values) else values.take(self._arrow.array(rows, self._arrow.int64()))
        )
        tables, bad = self._parsed(texts)
        errors.update((rows[position], told) for position, told in bad.items())
        table = self._arrow.concat_tables(tables) if tables else self._schema.empty_table()
        if table.num_rows == len(values):
            return Payload(table.combine_chunks(), errors)
        good = iter(range(table.num_rows))
        wanted = frozenset(rows) - errors.keys()
        indices = [next(good) if row in wanted else None for row in range(len(values))]
        return Payload(table.take(self._arrow.array(indices, self._arrow.int64())).combine_chunks(), errors)

    def _candidates(self, values: Any) -> tuple[Any, dict[int, str]]:
        """The rows that may hold one object each, and what is wrong with the others; null is nothing
        wrong."""
        compute = self._compute
        shaped = compute.and_(
            compute.starts_with(values, pattern="{"), compute.ends_with(values, pattern="}")
        )
        if values.null_count == 0 and compute.all(shaped).as_py():
            return range(len(values)), {}
        rows, errors = [], {}
        for row, is_shaped in enumerate(shaped.to_pylist()):
            if is_shaped is False:
                text = values[row].as_py().strip(_SPACE)
                is_shaped = text[:1] == b"{" and text[-1:] == b"}"
                if not is_shaped:
                    errors[row] = _NO_OBJECT
            if is_shaped:
                rows.append(row)
        return rows, errors

    def _parsed(self, texts: Any) -> tuple[list[Any], dict[int, str]]:
        """Tables of the values that can be read, in order, and what is wrong with the others by position."""
        tables, errors = [], {}
        waiting = [(0, len(texts))] if len(texts) else []
        while waiting:
            start, count = waiting.pop()
            try:
                tables.append(self._read(texts.slice(start, count)))
            except self._arrow.ArrowInvalid as error:
                if count == 1:
                    errors[start] = str(error)
                else:
                    half = count // 2
                    waiting += [(start + half, count - half), (start, half)]
        return tables, errors

    def _read(self, texts: Any) -> Any:
        arrow = self._arrow
        lists = arrow.ListArray.from_arrays(arrow.array([0, len(texts)], arrow.int32()), texts)
        text = self._compute.binary_join(lists, b"\n")[0].as_buffer()
        # One block for all, in this thread: Spark runs a task per core.
        reading = self._json.ReadOptions(use_threads=False, block_size=text.size + 1)
        table = self._json.read_json(
            arrow.BufferReader(text), read_options=reading, parse_options=self._options
        )
        if table.num_rows != len(texts):
            raise arrow.ArrowInvalid("it is not one JSON object")
        if self._has_casts:
            table = table.cast(self._schema)
        # The reader takes strings as they are; text that is no UTF-8 would break whoever gets it.
        table.validate(full=True)
        return table

    def _read_as(self, kind: Any) -> Any:
        """The type in which the reader takes a column: it knows dates as numbers only."""
        arrow = self._arrow
        if arrow.types.is_date32(kind):
            return arrow.string()
        if arrow.types.is_list(kind):
            return arrow.list_(kind.value_field.with_type(self._read_as(kind.value_type)))
        if arrow.types.is_struct(kind):
            return arrow.struct([field.with_type(self._read_as(field.type)) for field in kind])
        return kind
