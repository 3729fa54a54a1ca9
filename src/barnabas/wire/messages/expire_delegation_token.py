"""ExpireDelegationToken, key 40, versions 1-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import Field, Message

API_KEY = 40
VERSIONS = (1, 2)
FLEXIBLE_FROM = 2


class ExpireDelegationTokenRequest(Message):
    hmac: bytes = b""
    expiry_time_period_ms: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("hmac", "bytes", 1, 2),
        Field("expiry_time_period_ms", "int64", 1, 2),
    )


class ExpireDelegationTokenResponse(Message):
    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1, 2),
        Field("expiry_timestamp_ms", "int64", 1, 2),
        Field("throttle_time_ms", "int32", 1, 2),
    )


REQUEST = ExpireDelegationTokenRequest
RESPONSE = ExpireDelegationTokenResponse
