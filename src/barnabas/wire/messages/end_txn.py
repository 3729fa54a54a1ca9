"""EndTxn, key 26, versions 0-5. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import Field, Message

API_KEY = 26
VERSIONS = (0, 5)
FLEXIBLE_FROM = 3


class EndTxnRequest(Message):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", 0, 5),
        Field("producer_id", "int64", 0, 5),
        Field("producer_epoch", "int16", 0, 5),
        Field("committed", "bool", 0, 5),
    )


class EndTxnResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 5),
        Field("error_code", "int16", 0, 5),
        Field("producer_id", "int64", 5, 5),
        Field("producer_epoch", "int16", 5, 5),
    )


REQUEST = EndTxnRequest
RESPONSE = EndTxnResponse
