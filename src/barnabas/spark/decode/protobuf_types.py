"""Protobuf messages as Spark columns, and functions that take a field out of a message.

A field that is not set is null if the message can tell (messages, `optional`, members of a oneof); otherwise
it has its default value, as Protobuf defines. Enums are their names, google.protobuf.Timestamp is a
timestamp, and the wrappers such as StringValue are the values in them."""

import decimal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.spark.options import OptionError

Converter = Callable[[Any], Any]
DEPTH_MAX = 32
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMESTAMP = "google.protobuf.Timestamp"
WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
# The numbers are those of FieldDescriptor.CPPTYPE_*.
_INT32, _INT64, _UINT32, _UINT64, _DOUBLE, _FLOAT, _BOOL, _ENUM, _STRING, _MESSAGE = range(1, 11)
_KINDS: dict[int, DataType] = {
    _INT32: IntegerType(),
    _INT64: LongType(),
    _UINT32: LongType(),
    _UINT64: DecimalType(20, 0),
    _DOUBLE: DoubleType(),
    _FLOAT: FloatType(),
    _BOOL: BooleanType(),
    _ENUM: StringType(),
}


def spark_schema(descriptor: Any, depth: int = 0) -> StructType:
    """The columns of a message; OptionError if it cannot be read as columns."""
    if depth > DEPTH_MAX:
        raise OptionError(
            f"The message {descriptor.full_name} is nested too deeply or contains itself, which a column"
            " cannot: give a schema with .schema() without this field."
        )
    return StructType([StructField(field.name, _field_type(field, depth)) for field in descriptor.fields])


def _field_type(field: Any, depth: int) -> DataType:
    if _is_map(field):
        entry = field.message_type.fields_by_name
        return MapType(_type(entry["key"], depth), _type(entry["value"], depth))
    return ArrayType(_type(field, depth)) if field.is_repeated else _type(field, depth)


def _type(field: Any, depth: int) -> DataType:
    if field.cpp_type == _STRING:
        return BinaryType() if field.type == field.TYPE_BYTES else StringType()
    if field.cpp_type != _MESSAGE:
        return _KINDS[field.cpp_type]
    name = field.message_type.full_name
    if name == TIMESTAMP:
        return TimestampType()
    if name in WRAPPERS:
        return _type(field.message_type.fields_by_name["value"], depth)
    return spark_schema(field.message_type, depth + 1)


def _is_map(field: Any) -> bool:
    return bool(
        field.is_repeated and field.cpp_type == _MESSAGE and field.message_type.GetOptions().map_entry
    )


def converter_of(field: Any) -> Converter:
    """A function from a message to the value of the field as Arrow takes it."""
    name = field.name
    if _is_map(field):
        value = _value_converter(field.message_type.fields_by_name["value"])
        return lambda message: [(key, value(each)) for key, each in getattr(message, name).items()]
    convert = _value_converter(field)
    if field.is_repeated:
        return lambda message: [convert(each) for each in getattr(message, name)]
    if field.has_presence:
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    return lambda message: convert(getattr(message, name))


def _value_converter(field: Any) -> Converter:
    if field.cpp_type == _UINT64:
        return decimal.Decimal
    if field.cpp_type == _ENUM:
        names = field.enum_type.values_by_number
        # A number that the descriptors do not know may come from a newer writer.
        return lambda number: names[number].name if number in names else str(number)
    if field.cpp_type != _MESSAGE:
        return lambda value: value
    kind = field.message_type
    if kind.full_name == TIMESTAMP:
        return lambda time: EPOCH + timedelta(seconds=time.seconds, microseconds=time.nanos // 1000)
    if kind.full_name in WRAPPERS:
        return converter_of(kind.fields_by_name["value"])
    return _message_converter(kind)


def _message_converter(kind: Any) -> Converter:
    # They are made at the first value, because a message may contain itself.
    converters: dict[str, Converter] = {}

    def convert(message: Any) -> dict[str, Any]:
        if not converters:
            converters.update({field.name: converter_of(field) for field in kind.fields})
        return {name: converter(message) for name, converter in converters.items()}

    return convert
