"""ReadShareGroupStateSummary, key 87, versions 0-1. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 87
VERSIONS = (0, 1)
FLEXIBLE_FROM = 0


class PartitionData(Message):
    partition: int = 0
    leader_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0, 1),
        Field("leader_epoch", "int32", 0, 1),
    )


class ReadStateSummaryData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0, 1),
        Field("partitions", PartitionData, 0, 1, array=True),
    )


class ReadShareGroupStateSummaryRequest(Message):
    group_id: str = ""
    topics: list[ReadStateSummaryData] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 1),
        Field("topics", ReadStateSummaryData, 0, 1, array=True),
    )


class PartitionResult(Message):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0, 1),
        Field("error_code", "int16", 0, 1),
        Field("error_message", "string", 0, 1, nullable_from=0),
        Field("state_epoch", "int32", 0, 1),
        Field("leader_epoch", "int32", 0, 1),
        Field("start_offset", "int64", 0, 1),
        Field("delivery_complete_count", "int32", 1, 1),
    )


class ReadStateSummaryResult(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0, 1),
        Field("partitions", PartitionResult, 0, 1, array=True),
    )


class ReadShareGroupStateSummaryResponse(Message):
    results: list[ReadStateSummaryResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("results", ReadStateSummaryResult, 0, 1, array=True),)


REQUEST = ReadShareGroupStateSummaryRequest
RESPONSE = ReadShareGroupStateSummaryResponse
