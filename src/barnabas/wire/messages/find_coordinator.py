"""FindCoordinator, key 10, versions 0-6. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 10
VERSIONS = (0, 6)
FLEXIBLE_FROM = 3


class FindCoordinatorRequest(Message):
    key: str = ""
    key_type: int = 0
    coordinator_keys: list[str] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", 0, 3),
        Field("key_type", "int8", 1, 6),
        Field("coordinator_keys", "string", 4, 6, array=True),
    )


class Coordinator(Message):
    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", 4, 6),
        Field("node_id", "int32", 4, 6),
        Field("host", "string", 4, 6),
        Field("port", "int32", 4, 6),
        Field("error_code", "int16", 4, 6),
        Field("error_message", "string", 4, 6, nullable_from=4),
    )


class FindCoordinatorResponse(Message):
    throttle_time_ms: int = 0
    coordinators: list[Coordinator] = EMPTY
    error_code: int = 0
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 6),
        Field("coordinators", Coordinator, 4, 6, array=True),
        Field("error_code", "int16", 0, 3),
        Field("error_message", "string", 1, 3, nullable_from=1),
        Field("node_id", "int32", 0, 3),
        Field("host", "string", 0, 3),
        Field("port", "int32", 0, 3),
    )


REQUEST = FindCoordinatorRequest
RESPONSE = FindCoordinatorResponse
