"""The keys and values of `__transaction_state`, in Kafka's format.

A key is its type (0) and the transactional id; a value is its version (0, or 1, which is flexible) and the
fields below. A null value is a tombstone. Records of an unknown type or version are skipped."""

import logging
import struct
from typing import ClassVar, NamedTuple

from barnabas.coordination.step import JournalRecord
from barnabas.ids import TopicPartition
from barnabas.transactions.metadata import EPOCH_BUMP_VERSION, Transaction
from barnabas.transactions.states import BY_NUMBER, State
from barnabas.wire.codec import decode_message, encode_message
from barnabas.wire.message import EMPTY, Field, Message

logger = logging.getLogger(__name__)

KEY_TYPE = 0
VALUE_VERSION_MAX = 1
VALUE_FLEXIBLE_FROM = 1
_NEVER_FLEXIBLE = 32767
_PREFIX = struct.Struct(">h")


class TransactionLogKey(Message):
    transactional_id: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("transactional_id", "string", 0, 0),)


class TransactionLogPartitions(Message):
    topic: str = ""
    partition_ids: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 0, 1),
        Field("partition_ids", "int32", 0, 1, array=True),
    )


class TransactionLogValue(Message):
    producer_id: int = 0
    previous_producer_id: int = -1
    next_producer_id: int = -1
    producer_epoch: int = 0
    next_producer_epoch: int = -1
    transaction_timeout_ms: int = 0
    transaction_status: int = 0
    transaction_partitions: list[TransactionLogPartitions] | None = EMPTY
    transaction_last_update_timestamp_ms: int = 0
    transaction_start_timestamp_ms: int = 0
    client_transaction_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", 0, 1),
        Field("previous_producer_id", "int64", 1, 1, tag=0),
        Field("next_producer_id", "int64", 1, 1, tag=1),
        Field("producer_epoch", "int16", 0, 1),
        Field("next_producer_epoch", "int16", 1, 1, tag=3),
        Field("transaction_timeout_ms", "int32", 0, 1),
        Field("transaction_status", "int8", 0, 1),
        Field("transaction_partitions", TransactionLogPartitions, 0, 1, array=True, nullable_from=0),
        Field("transaction_last_update_timestamp_ms", "int64", 0, 1),
        Field("transaction_start_timestamp_ms", "int64", 0, 1),
        Field("client_transaction_version", "int16", 1, 1, tag=2),
    )


class Entry(NamedTuple):
    """A decoded record: the state of a transactional id, or None for its tombstone."""

    transactional_id: str
    transaction: Transaction | None


def encode(transactional_id: str, transaction: Transaction, transaction_version: int) -> JournalRecord:
    """Version 0 has no fields for version 2 clients, so their transactions are always written as version
    1."""
    version = 1 if transaction_version >= 1 or transaction.client_version >= EPOCH_BUMP_VERSION else 0
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=_by_topic(transaction),
        transaction_last_update_timestamp_ms=transaction.update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )
    data = _PREFIX.pack(version) + encode_message(value, version, VALUE_FLEXIBLE_FROM)
    return JournalRecord(_key(transactional_id), data)


def tombstone(transactional_id: str) -> JournalRecord:
    return JournalRecord(_key(transactional_id), None)


def decode(record: JournalRecord) -> Entry | None:
    """The decoded record, or None if its type or version is unknown."""
    messages = decode_messages(record)
    if messages is None:
        return None
    key, value = messages
    return Entry(key.transactional_id, None if value is None else _transaction(value))


def decode_messages(record: JournalRecord) -> tuple[TransactionLogKey, TransactionLogValue | None] | None:
    """The key and the value with all fields, or None if the type or version is unknown."""
    (kind,) = _PREFIX.unpack_from(record.key)
    if kind != KEY_TYPE:
        logger.warning("skipping a transaction record with a key of unknown type %d", kind)
        return None
    key = decode_message(TransactionLogKey, 0, _NEVER_FLEXIBLE, record.key[_PREFIX.size :])
    if record.value is None:
        return key, None
    (version,) = _PREFIX.unpack_from(record.value)
    if not 0 <= version <= VALUE_VERSION_MAX:
        logger.warning("skipping a record of %r with unknown version %d", key.transactional_id, version)
        return None
    body = record.value[_PREFIX.size :]
    return key, decode_message(TransactionLogValue, version, VALUE_FLEXIBLE_FROM, body)


def _transaction(value: TransactionLogValue) -> Transaction:
    return Transaction(
        producer_id=value.producer_id,
        timeout_ms=value.transaction_timeout_ms,
        update_ms=value.transaction_last_update_timestamp_ms,
        epoch=value.producer_epoch,
        state=_state(value.transaction_status),
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def _state(number: int) -> State:
    """An unknown state cannot be skipped: the transaction would never end."""
    if number not in BY_NUMBER:
        raise ValueError(f"{number} is not a transaction state")
    return BY_NUMBER[number]


def _key(transactional_id: str) -> bytes:
    key = TransactionLogKey(transactional_id=transactional_id)
    return _PREFIX.pack(KEY_TYPE) + encode_message(key, 0, _NEVER_FLEXIBLE)


def _by_topic(transaction: Transaction) -> list[TransactionLogPartitions] | None:
    if transaction.state is State.EMPTY:
        return None
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(partition)
    return [TransactionLogPartitions(topic=topic, partition_ids=ids) for topic, ids in topics.items()]
