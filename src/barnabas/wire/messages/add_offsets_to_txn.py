"""AddOffsetsToTxn, key 25, versions 0-4. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import Field, Message

API_KEY = 25
VERSIONS = (0, 4)
FLEXIBLE_FROM = 3


class AddOffsetsToTxnRequest(Message):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", 0, 4),
        Field("producer_id", "int64", 0, 4),
        Field("producer_epoch", "int16", 0, 4),
        Field("group_id", "string", 0, 4),
    )


class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 4),
        Field("error_code", "int16", 0, 4),
    )


REQUEST = AddOffsetsToTxnRequest
RESPONSE = AddOffsetsToTxnResponse
