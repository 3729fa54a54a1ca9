"""InitProducerId, key 22, versions 0-6. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import Field, Message

API_KEY = 22
VERSIONS = (0, 6)
FLEXIBLE_FROM = 2


class InitProducerIdRequest(Message):
    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    enable2_pc: bool = False
    keep_prepared_txn: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", 0, 6, nullable_from=0),
        Field("transaction_timeout_ms", "int32", 0, 6),
        Field("producer_id", "int64", 3, 6),
        Field("producer_epoch", "int16", 3, 6),
        Field("enable2_pc", "bool", 6, 6),
        Field("keep_prepared_txn", "bool", 6, 6),
    )


class InitProducerIdResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0
    ongoing_txn_producer_id: int = -1
    ongoing_txn_producer_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 6),
        Field("error_code", "int16", 0, 6),
        Field("producer_id", "int64", 0, 6),
        Field("producer_epoch", "int16", 0, 6),
        Field("ongoing_txn_producer_id", "int64", 6, 6),
        Field("ongoing_txn_producer_epoch", "int16", 6, 6),
    )


REQUEST = InitProducerIdRequest
RESPONSE = InitProducerIdResponse
