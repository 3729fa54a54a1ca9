"""RenewDelegationToken, key 39, versions 1-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import Field, Message

API_KEY = 39
VERSIONS = (1, 2)
FLEXIBLE_FROM = 2


class RenewDelegationTokenRequest(Message):
    hmac: bytes = b""
    renew_period_ms: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("hmac", "bytes", 1, 2),
        Field("renew_period_ms", "int64", 1, 2),
    )


class RenewDelegationTokenResponse(Message):
    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1, 2),
        Field("expiry_timestamp_ms", "int64", 1, 2),
        Field("throttle_time_ms", "int32", 1, 2),
    )


REQUEST = RenewDelegationTokenRequest
RESPONSE = RenewDelegationTokenResponse
