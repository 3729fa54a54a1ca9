"""Spark schemas as text, as in CREATE TABLE. Spark has a function for it that needs a session; this needs
none."""

from pyspark.sql.types import ArrayType, DataType, MapType, StructType


def ddl_of(schema: StructType) -> str:
    return _fields(schema, " ")


def _fields(schema: StructType, between: str) -> str:
    return ", ".join(f"{_quoted(field.name)}{between}{_type(field.dataType)}" for field in schema.fields)


def _type(kind: DataType) -> str:
    if isinstance(kind, StructType):
        return f"struct<{_fields(kind, ': ')}>"
    if isinstance(kind, ArrayType):
        return f"array<{_type(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<{_type(kind.keyType)}, {_type(kind.valueType)}>"
    return kind.simpleString()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
