"""The columns of a query: those of Spark's Kafka connector, those of decoded values, and schema checks."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Protocol

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.spark.options import OptionError, read_options
from barnabas.spark.ranges import RANGE_SCHEMA
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
# With an envelope: whether the row was deleted.
DELETED = "deleted"
# The columns beside decoded ones if no schema is given.
_BESIDE_DECODED = ("topic", "partition", "offset", "timestamp")


class Projection(Protocol):
    """Turns batches with `kafka_columns` into batches with the schema of the query."""

    kafka_columns: tuple[str, ...]

    def apply(self, batch: Any) -> Iterator[Any]: ...

    def finish(self) -> None:
        """Called when the whole range was read."""


class BadRecords(Protocol):
    """Gets the records that cannot be decoded; they are not in the result."""

    def send(self, batch: Any, errors: Mapping[int, str]) -> None:
        """Take the rows of a batch that are in `errors`, with the reason for each."""

    def flush(self) -> None:
        """Called when the whole range was read."""


class AsRead:
    """The columns of records as they are: the kernel makes only those that are needed."""

    def __init__(self, kafka_columns: tuple[str, ...]) -> None:
        self.kafka_columns = kafka_columns

    def apply(self, batch: Any) -> Iterator[Any]:
        yield batch

    def finish(self) -> None:
        return None


def projection_of(settings: ReadSettings, schema: StructType, bad: BadRecords | None = None) -> Projection:
    if settings.decoding.format == "none":
        return AsRead(tuple(schema.fieldNames()))
    from barnabas.spark.decode.projection import Decoded

    return Decoded(settings, schema, bad)


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
    if values["rangesOnly"]:
        return RANGE_SCHEMA
    decoding, topics = decoding_of(values), topics_of(values)
    if decoding.format == "none":
        names = [name for name in KAFKA_COLUMNS if name != "headers" or values["includeHeaders"]]
        return StructType([_own(name) for name in values["columns"] or names])
    return _decoded_schema(decoding, value_schema(decoding, topics), values["columns"])


def value_schema(decoding: Decoding, topics: Topics) -> StructType:
    """The columns of decoded values, from the schema that the options name."""
    if decoding.format in ("json", "csv"):
        raise OptionError(
            f"decode={decoding.format} needs a schema: give it, for example"
            ' .schema("id long, name string, _offset long").'
        )
    if decoding.format == "protobuf":
        from barnabas.spark.decode.protobuf import schema_of as protobuf_schema

        return protobuf_schema(decoding)
    from barnabas.spark.decode.avro import schema_of

    schema = schema_of(decoding, topics)
    if decoding.envelope == "none":
        return schema
    from barnabas.spark.decode.envelopes import row_schema

    return row_schema(decoding, schema)


def _own(name: str) -> StructField:
    if name not in KAFKA_COLUMNS:
        raise _no_column(name, KAFKA_COLUMNS)
    return StructField(name, KAFKA_COLUMNS[name])


def _decoded_schema(decoding: Decoding, value: StructType, columns: tuple[str, ...] | None) -> StructType:
    fields = {field.name: field for field in value.fields}
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
    if settings["rangesOnly"]:
        if schema != RANGE_SCHEMA:
            raise OptionError("With rangesOnly the columns are those of ranges: do not give a schema.")
        return
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
    _check_payload(decoding, payload_of(decoding, schema))


def _check_payload(decoding: Decoding, payload: StructType) -> None:
    if decoding.format == "json":
        from barnabas.spark.decode.json import check_payload

        check_payload(payload)
    if decoding.format == "csv":
        from barnabas.spark.decode.csv import check_payload as check_csv

        check_csv(payload)
    if decoding.envelope != "none":
        deleted = decoding.prefix + DELETED
        if deleted in payload.fieldNames():
            _check_type(payload[deleted], BooleanType())


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
