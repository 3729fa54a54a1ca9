"""RemoveRaftVoter, key 81, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import Field, Message

API_KEY = 81
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class RemoveRaftVoterRequest(Message):
    cluster_id: str | None = ""
    voter_id: int = 0
    voter_directory_id: bytes = bytes(16)

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", 0, 0, nullable_from=0),
        Field("voter_id", "int32", 0, 0),
        Field("voter_directory_id", "uuid", 0, 0),
    )


class RemoveRaftVoterResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
    )


REQUEST = RemoveRaftVoterRequest
RESPONSE = RemoveRaftVoterResponse
