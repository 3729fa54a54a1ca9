"""Prints records of __consumer_offsets and __transaction_state as JSON, as Kafka's formatters do.

Kafka writes the objects without a separator; here each is on its own line."""

import json
import struct
from collections.abc import Callable

from barnabas.cli.message_json import as_json
from barnabas.coordination.step import JournalRecord
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups import records as group_records
from barnabas.kernels.record_decode import ConsumerRecord
from barnabas.transactions import records as transaction_records
from barnabas.wire.message import Message

_INT16 = struct.Struct(">h")
_OFFSETS = (0, 1)
_GROUP_METADATA = (2,)


class _Decoded:
    """The key and value of a record as messages, and the version of the value, which decides its fields."""

    def __init__(self, kind: int, key: Message, value: Message | None, version: int) -> None:
        self.kind, self.key, self.value, self.version = kind, key, value, version

    def line(self) -> bytes:
        value = None
        if self.value is not None:
            value = {"version": self.version, "data": as_json(self.value, self.version)}
        shown = {"key": {"type": self.kind, "data": as_json(self.key, 0)}, "value": value}
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _of_groups(kinds: tuple[int, ...]) -> Callable[[ConsumerRecord], bytes | None]:
    def formatted(record: ConsumerRecord) -> bytes | None:
        if record.key is None or _kind(record) not in kinds:
            return None
        journaled = JournalRecord(record.key, record.value)
        decoded = group_records.decode(journaled)
        if decoded is None:
            return None
        return _Decoded(_kind(record), decoded.key, decoded.value, _version(record)).line()

    return formatted


def _of_transactions(record: ConsumerRecord) -> bytes | None:
    if record.key is None or _kind(record) != transaction_records.KEY_TYPE:
        return None
    decoded = transaction_records.decode_messages(JournalRecord(record.key, record.value))
    if decoded is None:
        return None
    key, value = decoded
    return _Decoded(transaction_records.KEY_TYPE, key, value, _version(record)).line()


def _kind(record: ConsumerRecord) -> int:
    return _number(record.key or b"", record, "key")


def _version(record: ConsumerRecord) -> int:
    return 0 if record.value is None else _number(record.value, record, "value")


def _number(data: bytes, record: ConsumerRecord, what: str) -> int:
    if len(data) < _INT16.size:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Could not read record at offset {record.offset} due to: its {what} has no type",
        )
    return int(_INT16.unpack_from(data)[0])


INTERNAL_FORMATTERS: dict[str, Callable[[ConsumerRecord], bytes | None]] = {
    "OffsetsMessageFormatter": _of_groups(_OFFSETS),
    "GroupMetadataMessageFormatter": _of_groups(_GROUP_METADATA),
    "TransactionLogMessageFormatter": _of_transactions,
}
