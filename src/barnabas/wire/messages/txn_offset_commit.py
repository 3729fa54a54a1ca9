"""TxnOffsetCommit, key 28, versions 0-5. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 28
VERSIONS = (0, 5)
FLEXIBLE_FROM = 3


class TxnOffsetCommitRequestPartition(Message):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 5),
        Field("committed_offset", "int64", 0, 5),
        Field("committed_leader_epoch", "int32", 2, 5),
        Field("committed_metadata", "string", 0, 5, nullable_from=0),
    )


class TxnOffsetCommitRequestTopic(Message):
    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 5),
        Field("partitions", TxnOffsetCommitRequestPartition, 0, 5, array=True),
    )


class TxnOffsetCommitRequest(Message):
    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: list[TxnOffsetCommitRequestTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", 0, 5),
        Field("group_id", "string", 0, 5),
        Field("producer_id", "int64", 0, 5),
        Field("producer_epoch", "int16", 0, 5),
        Field("generation_id", "int32", 3, 5),
        Field("member_id", "string", 3, 5),
        Field("group_instance_id", "string", 3, 5, nullable_from=3),
        Field("topics", TxnOffsetCommitRequestTopic, 0, 5, array=True),
    )


class TxnOffsetCommitResponsePartition(Message):
    partition_index: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0, 5),
        Field("error_code", "int16", 0, 5),
    )


class TxnOffsetCommitResponseTopic(Message):
    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 5),
        Field("partitions", TxnOffsetCommitResponsePartition, 0, 5, array=True),
    )


class TxnOffsetCommitResponse(Message):
    throttle_time_ms: int = 0
    topics: list[TxnOffsetCommitResponseTopic] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 5),
        Field("topics", TxnOffsetCommitResponseTopic, 0, 5, array=True),
    )


REQUEST = TxnOffsetCommitRequest
RESPONSE = TxnOffsetCommitResponse
