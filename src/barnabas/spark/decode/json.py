"""JSON values as columns, decoded by Arrow's reader a batch at a time, with the same result as one by one.

All values of a batch are joined with line feeds and read as one text. The result must be the same as if each
value were read alone, so each value must be one complete object. Only values that begin with { and end with }
are joined. Such a value cannot continue in the next one: after its last } an open object or array would need
a comma before the next {, and an open string must not contain a line feed. So if the text can be read and has
as many rows as values, each row is one value. If it cannot be read, the text is divided where the error seems
to be, down to the single bad values.

A value is bad if it is not an object, if a field does not have the type of its column (a number is not a
string, and 1.0 is not an integer), or if a field occurs twice. Fields without a column are ignored. Times are
ISO 8601 strings, in UTC unless they say otherwise."""

import json
import re
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType

from barnabas.spark.decode.projection import Payload
from barnabas.spark.options import OptionError

# Arrow's errors: "JSON parse error: Invalid value. in row 7", "... couldn't parse:yesterday".
_ROW = re.compile(r" in row (\d+)$")
_NOT_CONVERTED = re.compile(r"couldn't parse:(.+)$")
# If more rows have the text of an error, halves are better.
SUSPECTS_MAX = 1000
_SPACE = b" \t\r\n"
_NO_OBJECT = "it is not a JSON object"


def check_payload(payload: StructType) -> None:
    """Raise OptionError if a column has a type that cannot be read from JSON."""
    if not payload.fields:
        raise OptionError("decode=json needs a schema with at least one column of the value.")
    for field in payload.fields:
        _check_type(field.name, field.dataType)


def _check_type(name: str, kind: DataType) -> None:
    if isinstance(kind, MapType | BinaryType):
        raise OptionError(
            f"The column {name} has the type {kind.simpleString()}, which cannot be read from JSON: use a"
            " struct or string, or read the column value and use from_json."
        )
    if isinstance(kind, ArrayType):
        _check_type(f"{name}[]", kind.elementType)
    if isinstance(kind, StructType):
        for field in kind.fields:
            _check_type(f"{name}.{field.name}", field.dataType)


class _Lines(NamedTuple):
    """Values joined with line feeds, and where each of them starts without the line feeds."""

    text: Any
    starts: Any

    def part(self, start: int, count: int) -> Any:
        """Some of the values; nothing is copied."""
        position = self._position(start)
        return self.text.slice(position, self._position(start + count) - position)

    def _position(self, row: int) -> int:
        return int(self.starts[row].as_py()) - int(self.starts[0].as_py()) + row


class JsonDecoder:
    def __init__(self, payload: StructType) -> None:
        self._arrow = import_module("pyarrow")
        self._json = import_module("pyarrow.json")
        self._compute = import_module("pyarrow.compute")
        self._schema = to_arrow_schema(payload, timezone="UTC")
        read = self._arrow.schema([(field.name, self._read_as(field.type)) for field in self._schema])
        self._has_casts = read != self._schema
        self._options = self._json.ParseOptions(explicit_schema=read, unexpected_field_behavior="ignore")

    def decode(self, values: Any) -> Payload:
        rows, errors = self._candidates(values)
        texts = (
            values if len(rows) == len(values) else values.take(self._arrow.array(rows, self._arrow.int64()))
        )
        tables, bad = self._parsed(texts)
        errors.update((rows[position], error) for position, error in bad.items())
        table = self._arrow.concat_tables(tables) if tables else self._schema.empty_table()
        if table.num_rows == len(values):
            return Payload(table.combine_chunks(), errors)
        good = iter(range(table.num_rows))
        readable = frozenset(rows) - errors.keys()
        indices = [next(good) if row in readable else None for row in range(len(values))]
        return Payload(table.take(self._arrow.array(indices, self._arrow.int64())).combine_chunks(), errors)

    def _candidates(self, values: Any) -> tuple[Any, dict[int, str]]:
        """The rows that may be one object, and the errors of the others. Null is not an error."""
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
        """Tables of the values that can be read, in order, and the errors of the others by position."""
        tables, errors = [], {}
        lines = self._lines(texts)
        waiting = [(0, len(texts))] if len(texts) else []
        while waiting:
            start, count = waiting.pop()
            try:
                tables.append(self._read(lines.part(start, count), count))
            except self._arrow.ArrowInvalid as error:
                if count == 1:
                    errors[start] = str(error)
                else:
                    cuts = self._cuts(texts.slice(start, count), str(error)) | {0, count}
                    pieces = [(start + cut, end - cut) for cut, end in pairwise(sorted(cuts))]
                    waiting += reversed(pieces)
        return tables, errors

    def _cuts(self, texts: Any, error: str) -> set[int]:
        """Where to divide texts that cannot be read: around rows that the error is about, or in the middle. A
        row may be wrong, since all are read again."""
        if (found := _ROW.search(error)) and int(found[1]) < len(texts):
            return {int(found[1]), int(found[1]) + 1}
        cuts = {len(texts) // 2}
        if found := _NOT_CONVERTED.search(error):
            # The error has the text, but not the row.
            matches = self._compute.match_substring(texts, pattern=json.dumps(found[1], ensure_ascii=False))
            for row in self._compute.indices_nonzero(matches).to_pylist()[:SUSPECTS_MAX]:
                cuts |= {row, row + 1}
        return cuts

    def _lines(self, texts: Any) -> "_Lines":
        arrow = self._arrow
        lists = arrow.ListArray.from_arrays(arrow.array([0, len(texts)], arrow.int32()), texts)
        stream = arrow.BufferOutputStream()
        stream.write(self._compute.binary_join(lists, b"\n")[0].as_buffer())
        # With a line feed at its end, a text is one block for the reader even if values have line feeds.
        stream.write(b"\n")
        starts = arrow.Array.from_buffers(
            arrow.int32(), len(texts) + 1, [None, texts.buffers()[1]], offset=texts.offset
        )
        return _Lines(stream.getvalue(), starts)

    def _read(self, text: Any, count: int) -> Any:
        # One block, read in this thread: Spark already runs a task on each core.
        reading = self._json.ReadOptions(use_threads=False, block_size=text.size + 1)
        table = self._json.read_json(
            self._arrow.BufferReader(text), read_options=reading, parse_options=self._options
        )
        if table.num_rows != count:
            raise self._arrow.ArrowInvalid("it is not one JSON object")
        if self._has_casts:
            table = table.cast(self._schema)
        # The reader does not check strings; text that is not UTF-8 would cause errors later.
        table.validate(full=True)
        return table

    def _read_as(self, kind: Any) -> Any:
        """The type for the reader: it takes dates only as numbers, so they are read as strings and cast."""
        arrow = self._arrow
        if arrow.types.is_date32(kind):
            return arrow.string()
        if arrow.types.is_list(kind):
            return arrow.list_(kind.value_field.with_type(self._read_as(kind.value_type)))
        if arrow.types.is_struct(kind):
            return arrow.struct([field.with_type(self._read_as(field.type)) for field in kind])
        return kind
