"""Envelope, key 58, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import Field, Message

API_KEY = 58
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class EnvelopeRequest(Message):
    request_data: bytes = b""
    request_principal: bytes | None = b""
    client_host_address: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("request_data", "bytes", 0, 0),
        Field("request_principal", "bytes", 0, 0, nullable_from=0),
        Field("client_host_address", "bytes", 0, 0),
    )


class EnvelopeResponse(Message):
    response_data: bytes | None = None
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("response_data", "bytes", 0, 0, nullable_from=0),
        Field("error_code", "int16", 0, 0),
    )


REQUEST = EnvelopeRequest
RESPONSE = EnvelopeResponse
