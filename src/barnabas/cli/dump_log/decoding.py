"""Converts keys and values of records to text, or decodes them as records of the internal topics."""

import json
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from barnabas.cli.message_json import as_json
from barnabas.coordination.step import JournalRecord
from barnabas.errors import KafkaError
from barnabas.groups import records as group_records
from barnabas.groups.classic.protocol import read_assignment, read_subscription, version_of
from barnabas.groups.record_schemas import GroupMetadataValue
from barnabas.records.builder import Record
from barnabas.transactions import records as transaction_records
from barnabas.wire.codec import WireError
from barnabas.wire.message import Message

Texts = tuple[str | None, str | None]
TOMBSTONE = "<DELETE>"
CONSUMERS = "consumer"
_INT16 = struct.Struct(">h")


def text_of(record: Record) -> Texts:
    """As Kafka's StringDecoder: bytes that are not UTF-8 become the replacement character."""
    key, value = record.key, record.value
    return (
        None if key is None else key.decode(errors="replace"),
        None if value is None else value.decode(errors="replace"),
    )


def _offsets(record: Record) -> Texts:
    decoded = group_records.decode(_journaled(record))
    kind = _number(record.key)
    if decoded is None:
        return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
    data = None
    if decoded.value is not None:
        data = as_json(decoded.value, _number(record.value))
        if isinstance(decoded.value, GroupMetadataValue) and decoded.value.protocol_type == CONSUMERS:
            _decode_members(data, decoded.value)
    return _texts(kind, as_json(decoded.key, 0), record, data)


def _decode_members(data: dict[str, Any], value: GroupMetadataValue) -> None:
    """Decode the consumer protocol's data inside a group record; data that cannot be decoded stays as it
    is."""
    for shown, member in zip(data["members"], value.members, strict=True):
        with suppress(WireError):
            shown["subscription"] = _decoded(read_subscription, member.subscription)
        with suppress(WireError):
            if member.assignment:
                shown["assignment"] = _decoded(read_assignment, member.assignment)


def _decoded(read: Callable[[bytes], Message], data: bytes) -> dict[str, Any]:
    return as_json(read(data), version_of(data))


def _transactions(record: Record) -> Texts:
    decoded = transaction_records.decode_messages(_journaled(record))
    kind = _number(record.key)
    if decoded is None:
        return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
    key, value = decoded
    data = None if value is None else as_json(value, _number(record.value))
    return _texts(kind, as_json(key, 0), record, data)


def _texts(kind: int, key: dict[str, Any], record: Record, data: dict[str, Any] | None) -> Texts:
    shown = _json({"type": str(kind), "data": key})
    if data is None:
        return shown, TOMBSTONE
    return shown, _json({"version": str(_number(record.value)), "data": data})


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _journaled(record: Record) -> JournalRecord:
    return JournalRecord(record.key or b"", record.value)


def _number(data: bytes | None) -> int:
    return int(_INT16.unpack_from(data or b"")[0])


def _guarded(decode: Callable[[Record], Texts]) -> Callable[[Record], Texts]:
    """Report a record that cannot be decoded and continue with the next one."""

    def decoded(record: Record) -> Texts:
        try:
            return decode(record)
        except (KafkaError, WireError, struct.error) as error:
            return f"Error at offset {record.offset}, skipping. {error}", None

    return decoded


# The decoders by the option that selects them.
DECODERS: dict[str, Callable[[Record], Texts]] = {
    "offsets_decoder": _guarded(_offsets),
    "transaction_log_decoder": _guarded(_transactions),
}
