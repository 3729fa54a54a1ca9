"""Kafka's deserializers by their class names: they convert bytes to the text that Java would print."""

import struct
import uuid
from collections.abc import Callable, Mapping

from barnabas.cli.failures import ToolError
from barnabas.client.errors import SerializationError

Deserializer = Callable[[bytes], bytes]


def _number(name: str, layout: str) -> Deserializer:
    packed = struct.Struct(layout)

    def deserialize(data: bytes) -> bytes:
        if len(data) != packed.size:
            raise SerializationError(f"{name} needs {packed.size} bytes, got {len(data)}")
        return str(packed.unpack(data)[0]).encode()

    return deserialize


def _boolean(data: bytes) -> bytes:
    if data not in (b"\x00", b"\x01"):
        raise SerializationError("BooleanDeserializer needs one byte that is 0 or 1")
    return b"true" if data == b"\x01" else b"false"


def _uuid(data: bytes) -> bytes:
    try:
        return str(uuid.UUID(data.decode())).encode()
    except ValueError as error:
        raise SerializationError(f"UUIDDeserializer needs a UUID as text: {error}") from error


def _void(data: bytes) -> bytes:
    raise SerializationError("VoidDeserializer accepts only null")


_AS_IS: Deserializer = bytes
_BY_NAME: dict[str, Deserializer] = {
    "StringDeserializer": _AS_IS,
    "ByteArrayDeserializer": _AS_IS,
    "BytesDeserializer": _AS_IS,
    "ByteBufferDeserializer": _AS_IS,
    "ShortDeserializer": _number("ShortDeserializer", ">h"),
    "IntegerDeserializer": _number("IntegerDeserializer", ">i"),
    "LongDeserializer": _number("LongDeserializer", ">q"),
    "FloatDeserializer": _number("FloatDeserializer", ">f"),
    "DoubleDeserializer": _number("DoubleDeserializer", ">d"),
    "BooleanDeserializer": _boolean,
    "UUIDDeserializer": _uuid,
    "VoidDeserializer": _void,
}


def deserializer_of(properties: Mapping[str, str], key: str) -> Deserializer | None:
    name = properties.get(key)
    if not name:
        return None
    short = name.rpartition(".")[2]
    if short not in _BY_NAME:
        raise ToolError(
            f"{key}={name}: Java classes cannot be run here. The known names are {', '.join(_BY_NAME)}; "
            "--json prints bytes that are not text as base64, so that a program can decode them."
        )
    return _BY_NAME[short]
