"""Avro values as columns: Confluent's framing (a zero byte, a schema id) or none, each value by fastavro.

This is a path per record: some hundred thousand values a second and core. A value is bad where its frame or
data is malformed, where the registry has no schema of its id, or where a field does not fit its column."""

import io
import json
import struct
from importlib import import_module
from typing import Any

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from barnabas.spark.decode.avro_types import spark_schema, without_plain
from barnabas.spark.decode.projection import Payload
from barnabas.spark.decode.registry import RegisteredSchema, Registry, UnknownSchemaError
from barnabas.spark.options import OptionError
from barnabas.spark.settings import Decoding, Topics

_FRAME = struct.Struct(">bI")


class BadValueError(ValueError):
    """One value is at fault."""


def fastavro() -> Any:
    """The module, or a sentence that says how to get it."""
    try:
        return import_module("fastavro")
    except ImportError as error:
        raise ImportError("decode=avro needs fastavro: pip install 'barnabas[spark]'") from error


def schema_of(decoding: Decoding, topics: Topics) -> StructType:
    """The columns of values: those of avroSchema, else of the subject's latest schema in the registry."""
    if decoding.avro_schema is not None:
        return spark_schema(_given_schema(decoding.avro_schema))
    subject = decoding.subject
    if subject is None:
        if len(topics.known_names) != 1:
            raise OptionError("Which schema has the columns? Say it with schema.registry.subject.")
        subject = f"{topics.known_names[0]}-value"
    assert decoding.registry_url is not None
    found = Registry(decoding.registry_url, decoding.registry_user).latest(subject)
    return spark_schema(found.schema, found.references)


def _given_schema(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise OptionError(f"avroSchema is no JSON: {error}.") from None


class AvroDecoder:
    def __init__(self, decoding: Decoding, payload: StructType) -> None:
        self._arrow = import_module("pyarrow")
        self._fastavro = fastavro()
        self._schema = to_arrow_schema(payload, timezone="UTC")
        self._type = self._arrow.struct(list(self._schema))
        self._is_framed = decoding.framing == "confluent"
        self._reader_schema = None
        if decoding.avro_schema is not None:
            self._reader_schema = self._parsed(RegisteredSchema(_given_schema(decoding.avro_schema)))
        self._registry = (
            Registry(decoding.registry_url, decoding.registry_user)
            if decoding.registry_url is not None
            else None
        )
        self._writers: dict[int, Any] = {}

    def decode(self, values: Any) -> Payload:
        found: list[Any] = []
        errors: dict[int, str] = {}
        for row, value in enumerate(values.to_pylist()):
            try:
                found.append(None if value is None else self._value(value))
            except BadValueError as error:
                found.append(None)
                errors[row] = str(error)
        return Payload(self._table(found, errors), errors)

    def _value(self, value: bytes) -> Any:
        start, writer = self._writer_of(value)
        data = io.BytesIO(value)
        data.seek(start)
        try:
            record = self._fastavro.schemaless_reader(data, writer, self._reader_schema)
        except Exception as error:
            # Malformed data makes the reader fail in many ways; all of them are the value's fault.
            raise BadValueError(f"the Avro data is malformed: {error or type(error).__name__}") from error
        if data.tell() != len(value):
            raise BadValueError(f"{len(value) - data.tell()} bytes are left over behind the Avro data")
        return record

    def _writer_of(self, value: bytes) -> tuple[int, Any]:
        """Where the data of a value begins, and the schema it was written with."""
        if not self._is_framed:
            return 0, self._reader_schema
        if len(value) < _FRAME.size:
            raise BadValueError("it is shorter than the frame of an Avro value")
        magic, schema_id = _FRAME.unpack_from(value)
        if magic != 0:
            raise BadValueError(f"its first byte is {magic} and not 0, so it is no framed Avro value")
        if self._registry is None:
            return _FRAME.size, self._reader_schema
        if schema_id not in self._writers:
            try:
                self._writers[schema_id] = self._parsed(self._registry.by_id(schema_id))
            except UnknownSchemaError as error:
                raise BadValueError(f"the registry has no schema {schema_id}") from error
        return _FRAME.size, self._writers[schema_id]

    def _parsed(self, found: RegisteredSchema) -> Any:
        named: dict[str, Any] = {}
        try:
            for each in found.references:
                self._fastavro.parse_schema(without_plain(each), named_schemas=named)
            return self._fastavro.parse_schema(without_plain(found.schema), named_schemas=named)
        except (self._fastavro.schema.SchemaParseException, self._fastavro.schema.UnknownType) as error:
            raise OptionError(f"An Avro schema is malformed: {error}.") from error

    def _table(self, found: list[Any], errors: dict[int, str]) -> Any:
        try:
            return self._columns(found)
        except (self._arrow.ArrowException, TypeError, ValueError, OverflowError):
            # Some value does not fit: each is tried alone, and those that do not fit are bad.
            for row, record in enumerate(found):
                try:
                    self._columns([record])
                except (self._arrow.ArrowException, TypeError, ValueError, OverflowError) as error:
                    found[row] = None
                    errors[row] = f"it does not fit the columns: {error}"
            return self._columns(found)

    def _columns(self, found: list[Any]) -> Any:
        if any(record is not None and not isinstance(record, dict) for record in found):
            raise TypeError("the value is no Avro record")
        structs = self._arrow.array(found, self._type)
        return self._arrow.Table.from_arrays(structs.flatten(), schema=self._schema)
