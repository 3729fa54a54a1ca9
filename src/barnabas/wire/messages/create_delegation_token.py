"""CreateDelegationToken, key 38, versions 1-3. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 38
VERSIONS = (1, 3)
FLEXIBLE_FROM = 2


class CreatableRenewers(Message):
    principal_type: str = ""
    principal_name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", 1, 3),
        Field("principal_name", "string", 1, 3),
    )


class CreateDelegationTokenRequest(Message):
    owner_principal_type: str | None = ""
    owner_principal_name: str | None = ""
    renewers: list[CreatableRenewers] = EMPTY
    max_lifetime_ms: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("owner_principal_type", "string", 3, 3, nullable_from=3),
        Field("owner_principal_name", "string", 3, 3, nullable_from=3),
        Field("renewers", CreatableRenewers, 1, 3, array=True),
        Field("max_lifetime_ms", "int64", 1, 3),
    )


class CreateDelegationTokenResponse(Message):
    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp_ms: int = 0
    expiry_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1, 3),
        Field("principal_type", "string", 1, 3),
        Field("principal_name", "string", 1, 3),
        Field("token_requester_principal_type", "string", 3, 3),
        Field("token_requester_principal_name", "string", 3, 3),
        Field("issue_timestamp_ms", "int64", 1, 3),
        Field("expiry_timestamp_ms", "int64", 1, 3),
        Field("max_timestamp_ms", "int64", 1, 3),
        Field("token_id", "string", 1, 3),
        Field("hmac", "bytes", 1, 3),
        Field("throttle_time_ms", "int32", 1, 3),
    )


REQUEST = CreateDelegationTokenRequest
RESPONSE = CreateDelegationTokenResponse
