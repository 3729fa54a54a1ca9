"""DescribeUserScramCredentials, key 50, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 50
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class UserName(Message):
    name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("name", "string", 0, 0),)


class DescribeUserScramCredentialsRequest(Message):
    users: list[UserName] | None = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("users", UserName, 0, 0, array=True, nullable_from=0),)


class CredentialInfo(Message):
    mechanism: int = 0
    iterations: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("mechanism", "int8", 0, 0),
        Field("iterations", "int32", 0, 0),
    )


class DescribeUserScramCredentialsResult(Message):
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    credential_infos: list[CredentialInfo] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("user", "string", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
        Field("credential_infos", CredentialInfo, 0, 0, array=True),
    )


class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
        Field("results", DescribeUserScramCredentialsResult, 0, 0, array=True),
    )


REQUEST = DescribeUserScramCredentialsRequest
RESPONSE = DescribeUserScramCredentialsResponse
