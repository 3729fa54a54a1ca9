"""Kafka's deserializers by their class names: bytes in, the text that Java would print out."""

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
            raise SerializationError(f"{name} takes {packed.size} bytes, and there are {len(data)}")
        return str(packed.unpack(data)[0]).encode()

    return deserialize


def _boolean(data: bytes) -> bytes:
    if data not in (b"\x00", b"\x01"):
        raise SerializationError("BooleanDeserializer takes one byte that is 0 or 1")
    return b"true" if data == b"\x01" else b"false"


def _uuid(data: bytes) -> bytes:
    try:
        return str(uuid.UUID(data.decode())).encode()
    except ValueError as error:
        raise SerializationError(f"UUIDDeserializer takes a UUID as text: {error}") from error


def _void(data: bytes) -> bytes:
    raise SerializationError("VoidDeserializer takes nothing but null")


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
            f"{key}={name}: classes of Java cannot be run here. There are {', '.join(_BY_NAME)}; "
            "--json gives bytes that are no text as base64, for a program to decode."
        )
    return _BY_NAME[short]
