"""Avro values as columns, with Confluent's framing (a zero byte and a schema id) or none, decoded by
fastavro.

Values are decoded one by one: some hundred thousand per second and core. A value is bad if its frame or data
is malformed, if the registry has no schema with its id, or if a field does not fit its column."""

import io
import json
import struct
from importlib import import_module
from typing import Any

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from barnabas.client.schema_registry import RegisteredSchema, Registry, UnknownSchemaError
from barnabas.spark.decode.avro_types import spark_schema, without_plain
from barnabas.spark.decode.projection import Payload
from barnabas.spark.options import OptionError
from barnabas.spark.settings import Decoding, Topics

_FRAME = struct.Struct(">bI")


class BadValueError(ValueError):
    """One value cannot be decoded."""


def fastavro() -> Any:
    """The module fastavro; ImportError with a hint if it is not installed."""
    try:
        return import_module("fastavro")
    except ImportError as error:
        raise ImportError("decode=avro needs fastavro: pip install 'barnabas[spark]'") from error


def schema_of(decoding: Decoding, topics: Topics) -> StructType:
    """The columns of values: from avroSchema, otherwise from the latest schema of the subject in the
    registry."""
    if decoding.avro_schema is not None:
        return spark_schema(_given_schema(decoding.avro_schema))
    subject = decoding.subject
    if subject is None:
        if len(topics.known_names) != 1:
            raise OptionError(
                "With several topics it is not known which schema gives the columns: set"
                " schema.registry.subject."
            )
        subject = f"{topics.known_names[0]}-value"
    assert decoding.registry_url is not None
    latest = Registry(decoding.registry_url, decoding.registry_user).latest(subject)
    return spark_schema(latest.schema, latest.references)


def _given_schema(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise OptionError(f"avroSchema is not valid JSON: {error}.") from None


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
        records: list[Any] = []
        errors: dict[int, str] = {}
        for row, value in enumerate(values.to_pylist()):
            try:
                records.append(None if value is None else self._value(value))
            except BadValueError as error:
                records.append(None)
                errors[row] = str(error)
        return Payload(self._table(records, errors), errors)

    def _value(self, value: bytes) -> Any:
        start, writer = self._writer_of(value)
        data = io.BytesIO(value)
        data.seek(start)
        try:
            record = self._fastavro.schemaless_reader(data, writer, self._reader_schema)
        except Exception as error:
            # With malformed data the reader fails in many ways; the value is the cause of all of them.
            raise BadValueError(f"the Avro data is malformed: {error or type(error).__name__}") from error
        if data.tell() != len(value):
            raise BadValueError(f"there are {len(value) - data.tell()} extra bytes after the Avro data")
        return record

    def _writer_of(self, value: bytes) -> tuple[int, Any]:
        """The position where the data of a value begins, and the schema with which it was written."""
        if not self._is_framed:
            return 0, self._reader_schema
        if len(value) < _FRAME.size:
            raise BadValueError("it is too short for a framed Avro value")
        magic, schema_id = _FRAME.unpack_from(value)
        if magic != 0:
            raise BadValueError(f"it is not a framed Avro value: its first byte is {magic}, not 0")
        if self._registry is None:
            return _FRAME.size, self._reader_schema
        if schema_id not in self._writers:
            try:
                self._writers[schema_id] = self._parsed(self._registry.by_id(schema_id))
            except UnknownSchemaError as error:
                raise BadValueError(f"the registry has no schema with id {schema_id}") from error
        return _FRAME.size, self._writers[schema_id]

    def _parsed(self, registered: RegisteredSchema) -> Any:
        named: dict[str, Any] = {}
        try:
            for each in registered.references:
                self._fastavro.parse_schema(without_plain(each), named_schemas=named)
            return self._fastavro.parse_schema(without_plain(registered.schema), named_schemas=named)
        except (self._fastavro.schema.SchemaParseException, self._fastavro.schema.UnknownType) as error:
            raise OptionError(f"An Avro schema is malformed: {error}.") from error

    def _table(self, records: list[Any], errors: dict[int, str]) -> Any:
        try:
            return self._columns(records)
        except (self._arrow.ArrowException, TypeError, ValueError, OverflowError):
            # At least one value does not fit: try each alone to find the bad ones.
            for row, record in enumerate(records):
                try:
                    self._columns([record])
                except (self._arrow.ArrowException, TypeError, ValueError, OverflowError) as error:
                    records[row] = None
                    errors[row] = f"it does not fit the columns: {error}"
            return self._columns(records)

    def _columns(self, records: list[Any]) -> Any:
        if any(record is not None and not isinstance(record, dict) for record in records):
            raise TypeError("the value is not an Avro record")
        structs = self._arrow.array(records, self._type)
        return self._arrow.Table.from_arrays(structs.flatten(), schema=self._schema)
