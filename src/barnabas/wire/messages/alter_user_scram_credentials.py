"""AlterUserScramCredentials, key 51, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 51
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class ScramCredentialDeletion(Message):
    name: str = ""
    mechanism: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 0),
        Field("mechanism", "int8", 0, 0),
    )


class ScramCredentialUpsertion(Message):
    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 0),
        Field("mechanism", "int8", 0, 0),
        Field("iterations", "int32", 0, 0),
        Field("salt", "bytes", 0, 0),
        Field("salted_password", "bytes", 0, 0),
    )


class AlterUserScramCredentialsRequest(Message):
    deletions: list[ScramCredentialDeletion] = EMPTY
    upsertions: list[ScramCredentialUpsertion] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("deletions", ScramCredentialDeletion, 0, 0, array=True),
        Field("upsertions", ScramCredentialUpsertion, 0, 0, array=True),
    )


class AlterUserScramCredentialsResult(Message):
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("user", "string", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
    )


class AlterUserScramCredentialsResponse(Message):
    throttle_time_ms: int = 0
    results: list[AlterUserScramCredentialsResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("results", AlterUserScramCredentialsResult, 0, 0, array=True),
    )


REQUEST = AlterUserScramCredentialsRequest
RESPONSE = AlterUserScramCredentialsResponse
