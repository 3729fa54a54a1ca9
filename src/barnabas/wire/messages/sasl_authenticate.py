"""SaslAuthenticate, key 36, versions 0-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import Field, Message

API_KEY = 36
VERSIONS = (0, 2)
FLEXIBLE_FROM = 2


class SaslAuthenticateRequest(Message):
    auth_bytes: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("auth_bytes", "bytes", 0, 2),)


class SaslAuthenticateResponse(Message):
    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 2),
        Field("error_message", "string", 0, 2, nullable_from=0),
        Field("auth_bytes", "bytes", 0, 2),
        Field("session_lifetime_ms", "int64", 1, 2),
    )


REQUEST = SaslAuthenticateRequest
RESPONSE = SaslAuthenticateResponse
