"""ReadShareGroupState, key 84, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 84
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class PartitionData(Message):
    partition: int = 0
    leader_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0, 0),
        Field("leader_epoch", "int32", 0, 0),
    )


class ReadStateData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0, 0),
        Field("partitions", PartitionData, 0, 0, array=True),
    )


class ReadShareGroupStateRequest(Message):
    group_id: str = ""
    topics: list[ReadStateData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 0),
        Field("topics", ReadStateData, 0, 0, array=True),
    )


class StateBatch(Message):
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", 0, 0),
        Field("last_offset", "int64", 0, 0),
        Field("delivery_state", "int8", 0, 0),
        Field("delivery_count", "int16", 0, 0),
    )


class PartitionResult(Message):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: list[StateBatch] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
        Field("state_epoch", "int32", 0, 0),
        Field("start_offset", "int64", 0, 0),
        Field("state_batches", StateBatch, 0, 0, array=True),
    )


class ReadStateResult(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0, 0),
        Field("partitions", PartitionResult, 0, 0, array=True),
    )


class ReadShareGroupStateResponse(Message):
    results: list[ReadStateResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("results", ReadStateResult, 0, 0, array=True),)


REQUEST = ReadShareGroupStateRequest
RESPONSE = ReadShareGroupStateResponse
