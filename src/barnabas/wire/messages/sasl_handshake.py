"""SaslHandshake, key 17, versions 0-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, NEVER, Field, Message

API_KEY = 17
VERSIONS = (0, 1)
FLEXIBLE_FROM = NEVER


class SaslHandshakeRequest(Message):
    mechanism: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("mechanism", "string", 0, 1),)


class SaslHandshakeResponse(Message):
    error_code: int = 0
    mechanisms: list[str] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 1),
        Field("mechanisms", "string", 0, 1, array=True),
    )


REQUEST = SaslHandshakeRequest
RESPONSE = SaslHandshakeResponse
