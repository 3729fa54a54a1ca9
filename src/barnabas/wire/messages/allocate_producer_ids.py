"""AllocateProducerIds, key 67, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import Field, Message

API_KEY = 67
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class AllocateProducerIdsRequest(Message):
    broker_id: int = 0
    broker_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 0, 0),
        Field("broker_epoch", "int64", 0, 0),
    )


class AllocateProducerIdsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id_start: int = 0
    producer_id_len: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("producer_id_start", "int64", 0, 0),
        Field("producer_id_len", "int32", 0, 0),
    )


REQUEST = AllocateProducerIdsRequest
RESPONSE = AllocateProducerIdsResponse
