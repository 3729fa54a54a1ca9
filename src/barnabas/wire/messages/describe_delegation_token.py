"""DescribeDelegationToken, key 41, versions 1-3. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 41
VERSIONS = (1, 3)
FLEXIBLE_FROM = 2


class DescribeDelegationTokenOwner(Message):
    principal_type: str = ""
    principal_name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", 1, 3),
        Field("principal_name", "string", 1, 3),
    )


class DescribeDelegationTokenRequest(Message):
    owners: list[DescribeDelegationTokenOwner] | None = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("owners", DescribeDelegationTokenOwner, 1, 3, array=True, nullable_from=1),
    )


class DescribedDelegationTokenRenewer(Message):
    principal_type: str = ""
    principal_name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", 1, 3),
        Field("principal_name", "string", 1, 3),
    )


class DescribedDelegationToken(Message):
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp: int = 0
    expiry_timestamp: int = 0
    max_timestamp: int = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", 1, 3),
        Field("principal_name", "string", 1, 3),
        Field("token_requester_principal_type", "string", 3, 3),
        Field("token_requester_principal_name", "string", 3, 3),
        Field("issue_timestamp", "int64", 1, 3),
        Field("expiry_timestamp", "int64", 1, 3),
        Field("max_timestamp", "int64", 1, 3),
        Field("token_id", "string", 1, 3),
        Field("hmac", "bytes", 1, 3),
        Field("renewers", DescribedDelegationTokenRenewer, 1, 3, array=True),
    )


class DescribeDelegationTokenResponse(Message):
    error_code: int = 0
    tokens: list[DescribedDelegationToken] = EMPTY
    throttle_time_ms: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1, 3),
        Field("tokens", DescribedDelegationToken, 1, 3, array=True),
        Field("throttle_time_ms", "int32", 1, 3),
    )


REQUEST = DescribeDelegationTokenRequest
RESPONSE = DescribeDelegationTokenResponse
