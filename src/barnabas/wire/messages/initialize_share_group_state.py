"""InitializeShareGroupState, key 83, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 83
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class PartitionData(Message):
    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0, 0),
        Field("state_epoch", "int32", 0, 0),
        Field("start_offset", "int64", 0, 0),
    )


class InitializeStateData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0, 0),
        Field("partitions", PartitionData, 0, 0, array=True),
    )


class InitializeShareGroupStateRequest(Message):
    group_id: str = ""
    topics: list[InitializeStateData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 0),
        Field("topics", InitializeStateData, 0, 0, array=True),
    )


class PartitionResult(Message):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
    )


class InitializeStateResult(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0, 0),
        Field("partitions", PartitionResult, 0, 0, array=True),
    )


class InitializeShareGroupStateResponse(Message):
    results: list[InitializeStateResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("results", InitializeStateResult, 0, 0, array=True),)


REQUEST = InitializeShareGroupStateRequest
RESPONSE = InitializeShareGroupStateResponse
