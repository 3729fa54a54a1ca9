"""UnregisterBroker, key 64, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import Field, Message

API_KEY = 64
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class UnregisterBrokerRequest(Message):
    broker_id: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("broker_id", "int32", 0, 0),)


class UnregisterBrokerResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
    )


REQUEST = UnregisterBrokerRequest
RESPONSE = UnregisterBrokerResponse
