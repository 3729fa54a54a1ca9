"""CreatePartitions, key 37, versions 0-3. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 37
VERSIONS = (0, 3)
FLEXIBLE_FROM = 2


class CreatePartitionsAssignment(Message):
    broker_ids: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("broker_ids", "int32", 0, 3, array=True),)


class CreatePartitionsTopic(Message):
    name: str = ""
    count: int = 0
    assignments: list[CreatePartitionsAssignment] | None = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 3),
        Field("count", "int32", 0, 3),
        Field("assignments", CreatePartitionsAssignment, 0, 3, array=True, nullable_from=0),
    )


class CreatePartitionsRequest(Message):
    topics: list[CreatePartitionsTopic] = EMPTY
    timeout_ms: int = 0
    validate_only: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", CreatePartitionsTopic, 0, 3, array=True),
        Field("timeout_ms", "int32", 0, 3),
        Field("validate_only", "bool", 0, 3),
    )


class CreatePartitionsTopicResult(Message):
    name: str = ""
    error_code: int = 0
    error_message: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 3),
        Field("error_code", "int16", 0, 3),
        Field("error_message", "string", 0, 3, nullable_from=0),
    )


class CreatePartitionsResponse(Message):
    throttle_time_ms: int = 0
    results: list[CreatePartitionsTopicResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 3),
        Field("results", CreatePartitionsTopicResult, 0, 3, array=True),
    )


REQUEST = CreatePartitionsRequest
RESPONSE = CreatePartitionsResponse
