"""AddPartitionsToTxn, key 24, versions 0-5. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 24
VERSIONS = (0, 5)
FLEXIBLE_FROM = 3


class AddPartitionsToTxnTopic(Message):
    name: str = ""
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 5),
        Field("partitions", "int32", 0, 5, array=True),
    )


class AddPartitionsToTxnTransaction(Message):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", 4, 5),
        Field("producer_id", "int64", 4, 5),
        Field("producer_epoch", "int16", 4, 5),
        Field("verify_only", "bool", 4, 5),
        Field("topics", AddPartitionsToTxnTopic, 4, 5, array=True),
    )


class AddPartitionsToTxnRequest(Message):
    transactions: list[AddPartitionsToTxnTransaction] = EMPTY
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactions", AddPartitionsToTxnTransaction, 4, 5, array=True),
        Field("v3_and_below_transactional_id", "string", 0, 3),
        Field("v3_and_below_producer_id", "int64", 0, 3),
        Field("v3_and_below_producer_epoch", "int16", 0, 3),
        Field("v3_and_below_topics", AddPartitionsToTxnTopic, 0, 3, array=True),
    )


class AddPartitionsToTxnPartitionResult(Message):
    partition_index: int = 0
    partition_error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 5),
        Field("partition_error_code", "int16", 0, 5),
    )


class AddPartitionsToTxnTopicResult(Message):
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 5),
        Field("results_by_partition", AddPartitionsToTxnPartitionResult, 0, 5, array=True),
    )


class AddPartitionsToTxnResult(Message):
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", 4, 5),
        Field("topic_results", AddPartitionsToTxnTopicResult, 4, 5, array=True),
    )


class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    results_by_transaction: list[AddPartitionsToTxnResult] = EMPTY
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 5),
        Field("error_code", "int16", 4, 5),
        Field("results_by_transaction", AddPartitionsToTxnResult, 4, 5, array=True),
        Field("results_by_topic_v3_and_below", AddPartitionsToTxnTopicResult, 0, 3, array=True),
    )


REQUEST = AddPartitionsToTxnRequest
RESPONSE = AddPartitionsToTxnResponse
