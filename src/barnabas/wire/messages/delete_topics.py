"""DeleteTopics, key 20, versions 1-6. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 20
VERSIONS = (1, 6)
FLEXIBLE_FROM = 4


class DeleteTopicState(Message):
    name: str | None = None
    topic_id: bytes = bytes(16)

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 6, 6, nullable_from=6),
        Field("topic_id", "uuid", 6, 6),
    )


class DeleteTopicsRequest(Message):
    topics: list[DeleteTopicState] = EMPTY
    topic_names: list[str] = EMPTY
    timeout_ms: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", DeleteTopicState, 6, 6, array=True),
        Field("topic_names", "string", 1, 5, array=True),
        Field("timeout_ms", "int32", 1, 6),
    )


class DeletableTopicResult(Message):
    name: str | None = ""
    topic_id: bytes = bytes(16)
    error_code: int = 0
    error_message: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, 6, nullable_from=6),
        Field("topic_id", "uuid", 6, 6),
        Field("error_code", "int16", 1, 6),
        Field("error_message", "string", 5, 6, nullable_from=5),
    )


class DeleteTopicsResponse(Message):
    throttle_time_ms: int = 0
    responses: list[DeletableTopicResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 6),
        Field("responses", DeletableTopicResult, 1, 6, array=True),
    )


REQUEST = DeleteTopicsRequest
RESPONSE = DeleteTopicsResponse
