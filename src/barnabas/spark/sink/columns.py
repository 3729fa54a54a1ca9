"""The columns of a DataFrame that is written: checked when the query is planned, selected from every
batch."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from barnabas.spark.options import OptionError
from barnabas.spark.sink.settings import WriteSettings

_ALLOWED = {
    "value": "string or binary",
    "key": "string or binary",
    "headers": "array<struct<key:string,value:binary>>",
    "topic": "string",
    "partition": "int",
    "timestamp": "timestamp",
}
# A DataFrame that was read from a topic has these; they are ignored, since new records get their own.
_IGNORED = ("offset", "timestampType")


def written_columns(settings: WriteSettings, schema: StructType) -> tuple[str, ...]:
    """The columns to write; OptionError if some are missing, unknown or have a wrong type."""
    kinds = {field.name: field.dataType for field in schema.fields}
    for name in kinds:
        if name not in _ALLOWED and name not in _IGNORED:
            raise _unknown(name)
    if "value" not in kinds:
        raise OptionError(
            "The DataFrame has no column value: rename or add a column with the record's value."
        )
    if settings.topic is None and "topic" not in kinds:
        raise OptionError("There is no topic to write to: set the option topic, or add a column named topic.")
    left_out = _left_out(settings, kinds)
    written = tuple(name for name in _ALLOWED if name in kinds and name not in left_out)
    for name in written:
        if not _fits(name, kinds[name]):
            raise OptionError(
                f"The column {name} has the type {kinds[name].simpleString()}, but must be {_ALLOWED[name]}:"
                " cast it in the DataFrame."
            )
    return written


def _left_out(settings: WriteSettings, kinds: Mapping[str, DataType]) -> set[str]:
    left_out = {"topic"} if settings.topic is not None else set()
    for option, name in (("includeHeaders", "headers"), ("includeTimestamp", "timestamp")):
        if settings[option] and name not in kinds:
            raise OptionError(f"{option} is true, but the DataFrame has no column {name}.")
        if settings[option] is False:
            left_out.add(name)
    return left_out


def picked(batch: Any, columns: tuple[str, ...]) -> Any:
    """The pyarrow.RecordBatch with only these columns."""
    return batch.select(list(columns))


def _fits(name: str, kind: DataType) -> bool:
    if name in ("value", "key"):
        return _is_bytes(kind)
    if name == "headers":
        return _is_headers(kind)
    if name == "topic":
        return isinstance(kind, StringType)
    return isinstance(kind, IntegerType if name == "partition" else TimestampType)


def _is_bytes(kind: DataType) -> bool:
    return isinstance(kind, StringType | BinaryType)


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    if [field.name for field in fields] != ["key", "value"]:
        return False
    return isinstance(fields[0].dataType, StringType) and _is_bytes(fields[1].dataType)


def _unknown(name: str) -> OptionError:
    near = get_close_matches(name, [*_ALLOWED], n=1)
    hint = f"did you mean {near[0]}?" if near else f"records have {', '.join(_ALLOWED)}."
    return OptionError(f"The column {name} is not part of a record: drop or rename it; {hint}")
