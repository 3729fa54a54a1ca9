"""DescribeTransactions, key 65, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 65
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class DescribeTransactionsRequest(Message):
    transactional_ids: list[str] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("transactional_ids", "string", 0, 0, array=True),)


class TopicData(Message):
    topic: str = ""
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 0, 0),
        Field("partitions", "int32", 0, 0, array=True),
    )


class TransactionState(Message):
    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: list[TopicData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 0),
        Field("transactional_id", "string", 0, 0),
        Field("transaction_state", "string", 0, 0),
        Field("transaction_timeout_ms", "int32", 0, 0),
        Field("transaction_start_time_ms", "int64", 0, 0),
        Field("producer_id", "int64", 0, 0),
        Field("producer_epoch", "int16", 0, 0),
        Field("topics", TopicData, 0, 0, array=True),
    )


class DescribeTransactionsResponse(Message):
    throttle_time_ms: int = 0
    transaction_states: list[TransactionState] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("transaction_states", TransactionState, 0, 0, array=True),
    )


REQUEST = DescribeTransactionsRequest
RESPONSE = DescribeTransactionsResponse
