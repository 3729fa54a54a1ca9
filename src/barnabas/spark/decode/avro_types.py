"""Avro schemas as Spark schemas. Optional fields are nullable columns. Of other unions only int with long and
float with double can be a column."""

from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from barnabas.spark.options import OptionError

# Logical types without a column type: values are read as the type below the logical one.
PLAIN = frozenset({"uuid", "time-millis", "time-micros", "duration"})
DEPTH_MAX = 64

_PRIMITIVES: dict[str, DataType] = {
    "null": NullType(),
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
}
_LOGICAL: dict[str, DataType] = {
    "date": DateType(),
    "timestamp-millis": TimestampType(),
    "timestamp-micros": TimestampType(),
    "local-timestamp-millis": TimestampNTZType(),
    "local-timestamp-micros": TimestampNTZType(),
}
_WIDER = ({"int", "long"}, "long"), ({"float", "double"}, "double")


def without_plain(schema: Any) -> Any:
    """The schema without the logical types that have no column type."""
    if isinstance(schema, list):
        return [without_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: without_plain(value) for name, value in schema.items()}
    if kept.get("logicalType") in PLAIN:
        del kept["logicalType"]
    return kept


def spark_schema(schema: Any, references: tuple[Any, ...] = ()) -> StructType:
    """The columns of an Avro record; OptionError if it cannot be read as columns."""
    types = _Types()
    for each in references:
        types.learn(each)
    kind = types.of(schema, "the value", 0)
    if not isinstance(kind, StructType):
        raise OptionError("The Avro schema must be a record, whose fields become columns.")
    return kind


class _Types:
    """The types that a schema has defined so far, by full name and by the last part of the name."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}

    def learn(self, schema: Any) -> None:
        if isinstance(schema, dict) and "name" in schema:
            space = schema.get("namespace")
            self._named[schema["name"]] = schema
            if space:
                self._named[f"{space}.{schema['name']}"] = schema
        if isinstance(schema, list):
            for each in schema:
                self.learn(each)

    def of(self, schema: Any, where: str, depth: int) -> DataType:
        if depth > DEPTH_MAX:
            raise OptionError(
                f"The Avro schema of {where} is nested too deeply or refers to itself, which a column cannot:"
                " give a schema with .schema() without this field."
            )
        if isinstance(schema, list):
            return self._union(schema, where, depth)
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return _PRIMITIVES[schema]
            if schema not in self._named:
                raise OptionError(f"The Avro schema of {where} uses the type {schema}, which is not defined.")
            return self.of(self._named[schema], where, depth + 1)
        if not isinstance(schema, dict):
            raise OptionError(f"The Avro schema of {where} is malformed.")
        self.learn(schema)
        return self._complex(schema, where, depth)

    def _complex(self, schema: dict[str, Any], where: str, depth: int) -> DataType:
        kind = schema.get("type")
        logical = schema.get("logicalType")
        if logical in _LOGICAL:
            return _LOGICAL[logical]
        if logical == "decimal":
            return DecimalType(schema["precision"], schema.get("scale", 0))
        if kind == "record":
            fields = [
                StructField(field["name"], self.of(field["type"], f"{where}.{field['name']}", depth + 1))
                for field in schema["fields"]
            ]
            return StructType(fields)
        if kind == "array":
            return ArrayType(self.of(schema["items"], f"{where}[]", depth + 1))
        if kind == "map":
            return MapType(StringType(), self.of(schema["values"], f"{where}[]", depth + 1))
        if kind == "enum":
            return StringType()
        if kind == "fixed":
            return BinaryType()
        return self.of(kind, where, depth + 1)

    def _union(self, schema: list[Any], where: str, depth: int) -> DataType:
        branches = [each for each in schema if each != "null"]
        if len(branches) == 1:
            return self.of(branches[0], where, depth + 1)
        names = {each for each in branches if isinstance(each, str)}
        for members, wider in _WIDER:
            if len(names) == len(branches) and names == members:
                return _PRIMITIVES[wider]
        raise OptionError(
            f"The Avro schema of {where} is a union of several types, which cannot be a column: give a schema"
            " with .schema() without this field."
        )
