"""Converts messages of the protocol and of the internal topics to JSON, with Kafka's field names. No I/O
here."""

import base64
from typing import Any

from barnabas.wire.message import Message


def as_json(message: Message, version: int) -> dict[str, Any]:
    """The fields of this version with Kafka's names. Tagged fields with their default value are left out."""
    shown: dict[str, Any] = {}
    for field in message.FIELDS:
        if not field.first <= version <= field.last:
            continue
        value = getattr(message, field.name)
        if field.tag >= 0 and value == message.DEFAULTS[field.name]:
            continue
        shown[_camel(field.name)] = _json_value(value, field.type == "uuid", version)
    return shown


def _json_value(value: Any, is_uuid: bool, version: int) -> Any:
    if isinstance(value, Message):
        return as_json(value, version)
    if isinstance(value, list | tuple):
        return [_json_value(item, is_uuid, version) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        encoded = base64.urlsafe_b64encode(value).rstrip(b"=") if is_uuid else base64.b64encode(value)
        return encoded.decode()
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)
