"""The columns of a query: those of Spark's Kafka connector, those of decoded values, and schema checks."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Protocol

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.spark.options import OptionError, read_options
from barnabas.spark.settings import Decoding, ReadSettings, Topics, decoding_of, topics_of

KAFKA_COLUMNS: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
}
ERROR = "error"
# The columns beside decoded ones if no schema is given.
_BESIDE_DECODED = ("topic", "partition", "offset", "timestamp")


class Projection(Protocol):
    """Turns batches with `kafka_columns` into batches with the schema of the query."""

    kafka_columns: tuple[str, ...]

    def apply(self, batch: Any) -> Iterator[Any]: ...

    def finish(self) -> None:
        """Called when the whole range was read."""


class AsRead:
    """The columns of records as they are: the kernel makes only those that are needed."""

    def __init__(self, kafka_columns: tuple[str, ...]) -> None:
        self.kafka_columns = kafka_columns

    def apply(self, batch: Any) -> Iterator[Any]:
        yield batch

    def finish(self) -> None:
        return None


def projection_of(settings: ReadSettings, schema: StructType) -> Projection:
    if settings.decoding.format == "none":
        return AsRead(tuple(schema.fieldNames()))
    from barnabas.spark.decode.projection import Decoded

    return Decoded(settings, schema)


def metadata_columns(decoding: Decoding) -> dict[str, str]:
    """The names of the record's own columns beside decoded ones, such as {"_offset": "offset"}. The value for
    `_error` is ""."""
    names = {decoding.prefix + name: name for name in KAFKA_COLUMNS}
    return {**names, decoding.prefix + ERROR: ""}


def payload_of(decoding: Decoding, schema: StructType) -> StructType:
    """The columns of a schema that come from the value."""
    own = metadata_columns(decoding)
    return StructType([field for field in schema.fields if field.name not in own])


def default_schema(given: Mapping[str, str]) -> StructType:
    """The schema of a query if the user gives none."""
    values = read_options(given)
    decoding, topics = decoding_of(values), topics_of(values)
    if decoding.format == "none":
        names = [name for name in KAFKA_COLUMNS if name != "headers" or values["includeHeaders"]]
        return StructType([_own(name) for name in values["columns"] or names])
    if decoding.format == "json":
        raise OptionError(
            'decode=json needs a schema: give it, for example .schema("id long, name string, _offset long").'
        )
    return _avro_schema(decoding, topics, values["columns"])


def _own(name: str) -> StructField:
    if name not in KAFKA_COLUMNS:
        raise _no_column(name, KAFKA_COLUMNS)
    return StructField(name, KAFKA_COLUMNS[name])


def _avro_schema(decoding: Decoding, topics: Topics, columns: tuple[str, ...] | None) -> StructType:
    from barnabas.spark.decode.avro import schema_of

    fields = {field.name: field for field in schema_of(decoding, topics).fields}
    own = metadata_columns(decoding)
    for name, source in own.items():
        kind = KAFKA_COLUMNS.get(source, StringType())
        if columns is not None or source in _BESIDE_DECODED:
            fields[name] = StructField(name, kind)
    for name in columns or ():
        if name not in fields:
            raise _no_column(name, fields)
    return StructType([fields[name] for name in columns or fields])


def check_schema(settings: ReadSettings, schema: StructType) -> None:
    """Raise OptionError if a schema has a column that cannot be read, or cannot be read as its type."""
    if not schema.fields:
        raise OptionError("The schema has no columns; name at least one.")
    decoding = settings.decoding
    names = (
        metadata_columns(decoding) if decoding.format != "none" else {name: name for name in KAFKA_COLUMNS}
    )
    for field in schema.fields:
        if field.name in names:
            _check_type(field, KAFKA_COLUMNS.get(names[field.name], StringType()))
        elif decoding.format == "none":
            raise _no_column(field.name, names)
        _check_nullable(field)
    if decoding.format == "json":
        from barnabas.spark.decode.json import check_payload

        check_payload(payload_of(decoding, schema))


def _check_type(field: StructField, expected: DataType) -> None:
    if field.dataType != expected:
        raise OptionError(
            f"The column {field.name} has the type {expected.simpleString()} and cannot be read as"
            f" {field.dataType.simpleString()}: cast it in the DataFrame."
        )


def _check_nullable(field: StructField) -> None:
    if not field.nullable:
        raise OptionError(
            f"The column {field.name} is NOT NULL in the schema, but values may be null: remove NOT NULL."
        )


def _no_column(name: str, known: Iterable[str]) -> OptionError:
    near = get_close_matches(name, list(known), n=1)
    hint = f"did you mean {near[0]}?" if near else f"the columns are {', '.join(known)}."
    return OptionError(f"There is no column {name} to read; {hint}")
