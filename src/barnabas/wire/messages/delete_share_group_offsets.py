"""DeleteShareGroupOffsets, key 92, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 92
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class DeleteShareGroupOffsetsRequestTopic(Message):
    topic_name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topic_name", "string", 0, 0),)


class DeleteShareGroupOffsetsRequest(Message):
    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 0),
        Field("topics", DeleteShareGroupOffsetsRequestTopic, 0, 0, array=True),
    )


class DeleteShareGroupOffsetsResponseTopic(Message):
    topic_name: str = ""
    topic_id: bytes = bytes(16)
    error_code: int = 0
    error_message: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0, 0),
        Field("topic_id", "uuid", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
    )


class DeleteShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
        Field("responses", DeleteShareGroupOffsetsResponseTopic, 0, 0, array=True),
    )


REQUEST = DeleteShareGroupOffsetsRequest
RESPONSE = DeleteShareGroupOffsetsResponse
