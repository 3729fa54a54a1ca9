"""AddRaftVoter, key 80, versions 0-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 80
VERSIONS = (0, 1)
FLEXIBLE_FROM = 0


class Listener(Message):
    name: str = ""
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 1),
        Field("host", "string", 0, 1),
        Field("port", "uint16", 0, 1),
    )


class AddRaftVoterRequest(Message):
    cluster_id: str | None = ""
    timeout_ms: int = 0
    voter_id: int = 0
    voter_directory_id: bytes = bytes(16)
    listeners: list[Listener] = EMPTY
    ack_when_committed: bool = True

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", 0, 1, nullable_from=0),
        Field("timeout_ms", "int32", 0, 1),
        Field("voter_id", "int32", 0, 1),
        Field("voter_directory_id", "uuid", 0, 1),
        Field("listeners", Listener, 0, 1, array=True),
        Field("ack_when_committed", "bool", 1, 1),
    )


class AddRaftVoterResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 1),
        Field("error_code", "int16", 0, 1),
        Field("error_message", "string", 0, 1, nullable_from=0),
    )


REQUEST = AddRaftVoterRequest
RESPONSE = AddRaftVoterResponse
