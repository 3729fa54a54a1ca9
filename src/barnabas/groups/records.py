"""Encodes and decodes the records of `__consumer_offsets`, in Kafka's format.

A key is its type (int16) and its fields; a value is its version (int16) and its fields; a null value is a
tombstone. Keys of types that are not supported (share and streams groups) decode to None."""

import struct
from typing import NamedTuple, TypeAlias

from barnabas.coordination.step import JournalRecord
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups import record_schemas as schemas
from barnabas.wire.codec import WireError, decode_message, encode_message
from barnabas.wire.message import NEVER, Message

RecordKey: TypeAlias = (
    schemas.OffsetCommitKey
    | schemas.GroupMetadataKey
    | schemas.ConsumerGroupMetadataKey
    | schemas.ConsumerGroupPartitionMetadataKey
    | schemas.ConsumerGroupMemberMetadataKey
    | schemas.ConsumerGroupTargetAssignmentMetadataKey
    | schemas.ConsumerGroupTargetAssignmentMemberKey
    | schemas.ConsumerGroupCurrentMemberAssignmentKey
    | schemas.ConsumerGroupRegularExpressionKey
)
RecordValue: TypeAlias = (
    schemas.OffsetCommitValue
    | schemas.GroupMetadataValue
    | schemas.ConsumerGroupMetadataValue
    | schemas.ConsumerGroupPartitionMetadataValue
    | schemas.ConsumerGroupMemberMetadataValue
    | schemas.ConsumerGroupTargetAssignmentMetadataValue
    | schemas.ConsumerGroupTargetAssignmentMemberValue
    | schemas.ConsumerGroupCurrentMemberAssignmentValue
    | schemas.ConsumerGroupRegularExpressionValue
)

_INT16 = struct.Struct(">h")


class GroupRecord(NamedTuple):
    """A decoded record; a value of None is a tombstone."""

    key: RecordKey
    value: RecordValue | None


class _Kind(NamedTuple):
    number: int
    key: type[Message]
    value: type[Message]
    # The newest value version that can be read, the one that is written, and where flexible ones begin.
    last: int = 0
    written: int = 0
    flexible_from: int = 0


# Brokers of the 0.8 line wrote offsets under type 0, with the fields of type 1.
_LEGACY_OFFSET_TYPE = 0

_OFFSET = _Kind(1, schemas.OffsetCommitKey, schemas.OffsetCommitValue, last=4, written=4, flexible_from=4)
_KINDS = (
    _OFFSET,
    _Kind(2, schemas.GroupMetadataKey, schemas.GroupMetadataValue, last=4, written=3, flexible_from=4),
    _Kind(3, schemas.ConsumerGroupMetadataKey, schemas.ConsumerGroupMetadataValue),
    _Kind(4, schemas.ConsumerGroupPartitionMetadataKey, schemas.ConsumerGroupPartitionMetadataValue),
    _Kind(5, schemas.ConsumerGroupMemberMetadataKey, schemas.ConsumerGroupMemberMetadataValue),
    _Kind(
        6,
        schemas.ConsumerGroupTargetAssignmentMetadataKey,
        schemas.ConsumerGroupTargetAssignmentMetadataValue,
    ),
    _Kind(
        7, schemas.ConsumerGroupTargetAssignmentMemberKey, schemas.ConsumerGroupTargetAssignmentMemberValue
    ),
    _Kind(
        8, schemas.ConsumerGroupCurrentMemberAssignmentKey, schemas.ConsumerGroupCurrentMemberAssignmentValue
    ),
    _Kind(16, schemas.ConsumerGroupRegularExpressionKey, schemas.ConsumerGroupRegularExpressionValue),
)
_BY_KEY: dict[type[Message], _Kind] = {kind.key: kind for kind in _KINDS}
_BY_TYPE: dict[int, _Kind] = {kind.number: kind for kind in _KINDS} | {_LEGACY_OFFSET_TYPE: _OFFSET}


def encode(record: GroupRecord) -> JournalRecord:
    key, value = record
    kind = _BY_KEY[type(key)]
    head = _INT16.pack(kind.number) + encode_message(key, 0, NEVER)
    if value is None:
        return JournalRecord(head, None)
    if type(value) is not kind.value:
        raise TypeError(
            f"the value of a {type(key).__name__} is a {kind.value.__name__}, not a {type(value).__name__}"
        )
    version = _version_to_write(kind, value)
    return JournalRecord(head, _INT16.pack(version) + encode_message(value, version, kind.flexible_from))


def tombstone(key: RecordKey) -> JournalRecord:
    return encode(GroupRecord(key, None))


def decode(record: JournalRecord) -> GroupRecord | None:
    """The decoded record, or None if its type is not supported.

    A supported record that cannot be read is an error: without it a group or its offsets would be lost."""
    kind = _BY_TYPE.get(record_type(record))
    if kind is None:
        return None
    try:
        key = decode_message(kind.key, 0, NEVER, record.key[2:])
        value = None if record.value is None else _decode_value(kind, record.value)
    except WireError as error:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"cannot read a {kind.key.__name__} record: {error}"
        ) from error
    return GroupRecord(key, value)  # type: ignore[arg-type]


def record_type(record: JournalRecord) -> int:
    if len(record.key) < _INT16.size:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the key of a group record is too short to have a type")
    return int(_INT16.unpack_from(record.key)[0])


def _decode_value(kind: _Kind, data: bytes) -> Message:
    if len(data) < _INT16.size:
        raise WireError("the value is too short to have a version")
    version: int = _INT16.unpack_from(data)[0]
    if not 0 <= version <= kind.last:
        raise WireError(f"version {version} of {kind.value.__name__} is unknown")
    return decode_message(kind.value, version, kind.flexible_from, data[2:])


def _version_to_write(kind: _Kind, value: Message) -> int:
    # Only version 1 has the expiry time that an old client may choose; it has no leader epoch.
    if isinstance(value, schemas.OffsetCommitValue) and value.expire_timestamp != -1:
        return 1
    return kind.written
