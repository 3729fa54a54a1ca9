"""Protobuf values as columns, decoded by Google's library with the descriptors of the messages.

The descriptors are what `protoc --include_imports --descriptor_set_out` writes. A value is bad if it is not a
message of the given type, or if a field does not fit its column."""

import base64
import binascii
from importlib import import_module
from typing import Any

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from barnabas.spark.decode.projection import Payload
from barnabas.spark.decode.protobuf_types import Converter, converter_of, spark_schema
from barnabas.spark.options import OptionError
from barnabas.spark.settings import Decoding

FRAME_BYTES = 5


def descriptor_of(decoding: Decoding) -> Any:
    """The descriptor of the message; OptionError if it cannot be found."""
    descriptor_pb2 = _module("google.protobuf.descriptor_pb2")
    pool = _module("google.protobuf.descriptor_pool").DescriptorPool()
    decode_error = _module("google.protobuf.message").DecodeError
    try:
        data = base64.b64decode(decoding.descriptors or "", validate=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(data).file
    except (binascii.Error, decode_error) as error:
        raise OptionError(
            "The Protobuf descriptors are not what protoc --include_imports --descriptor_set_out writes."
        ) from error
    try:
        for file in files:
            pool.Add(file)
        return pool.FindMessageTypeByName(decoding.message)
    except (KeyError, TypeError) as error:
        known = [f"{file.package}.{each.name}".lstrip(".") for file in files for each in file.message_type]
        raise OptionError(
            f"The Protobuf descriptors have no complete message {decoding.message}; they have"
            f" {', '.join(known) or 'no messages'}. Write them with protoc --include_imports."
        ) from error


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError("decode=protobuf needs protobuf: pip install 'barnabas[spark]'") from error


def schema_of(decoding: Decoding) -> StructType:
    """The columns of values: the fields of the message."""
    return spark_schema(descriptor_of(decoding))


class ProtobufDecoder:
    def __init__(self, decoding: Decoding, payload: StructType) -> None:
        self._arrow = import_module("pyarrow")
        self._decode_error = _module("google.protobuf.message").DecodeError
        descriptor = descriptor_of(decoding)
        self._message = _module("google.protobuf.message_factory").GetMessageClass(descriptor)
        self._schema = to_arrow_schema(payload, timezone="UTC")
        self._is_framed = decoding.protobuf_framing == "confluent"
        fields = descriptor.fields_by_name
        self._columns: list[tuple[Any, Converter | None]] = [
            (field, converter_of(fields[field.name]) if field.name in fields else None)
            for field in self._schema
        ]

    def decode(self, values: Any) -> Payload:
        messages: list[Any] = []
        errors: dict[int, str] = {}
        for row, value in enumerate(values.to_pylist()):
            try:
                messages.append(None if value is None else self._value(value))
            except (self._decode_error, ValueError) as error:
                messages.append(None)
                errors[row] = f"it is not a {self._message.DESCRIPTOR.full_name}: {error}"
        columns = [self._column(field, converter, messages, errors) for field, converter in self._columns]
        return Payload(self._arrow.Table.from_arrays(columns, schema=self._schema), errors)

    def _value(self, value: bytes) -> Any:
        return self._message.FromString(_unframed(value) if self._is_framed else value)

    def _column(
        self, field: Any, converter: Converter | None, messages: list[Any], errors: dict[int, str]
    ) -> Any:
        def cell(message: Any) -> Any:
            return None if message is None or converter is None else converter(message)

        return self._array(field, [cell(message) for message in messages], errors)

    def _array(self, field: Any, cells: list[Any], errors: dict[int, str]) -> Any:
        wrong = (self._arrow.ArrowException, TypeError, ValueError, OverflowError)
        try:
            return self._arrow.array(cells, field.type)
        except wrong:
            # At least one cell does not fit: try each alone to find the bad ones.
            for row, cell in enumerate(cells):
                try:
                    self._arrow.array([cell], field.type)
                except wrong as error:
                    cells[row] = None
                    errors.setdefault(row, f"{field.name}: {error}")
            return self._arrow.array(cells, field.type)


def _unframed(value: bytes) -> bytes:
    """The message without Confluent's frame: a zero byte, a schema id, and the path to the message in its
    file, as a count and indexes. A single 0 is the first message."""
    if len(value) <= FRAME_BYTES or value[0] != 0:
        raise ValueError("it has no frame with a schema id")
    count, position = _varint(value, FRAME_BYTES)
    for _ in range(count):
        _, position = _varint(value, position)
    return value[position:]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A number in zigzag form and the position after it."""
    number = shift = 0
    while position < len(data):
        byte = data[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
    raise ValueError("its frame is cut off")
