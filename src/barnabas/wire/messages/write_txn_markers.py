"""WriteTxnMarkers, key 27, versions 1-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 27
VERSIONS = (1, 2)
FLEXIBLE_FROM = 1


class WritableTxnMarkerTopic(Message):
    name: str = ""
    partition_indexes: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, 2),
        Field("partition_indexes", "int32", 1, 2, array=True),
    )


class WritableTxnMarker(Message):
    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = EMPTY
    coordinator_epoch: int = 0
    transaction_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", 1, 2),
        Field("producer_epoch", "int16", 1, 2),
        Field("transaction_result", "bool", 1, 2),
        Field("topics", WritableTxnMarkerTopic, 1, 2, array=True),
        Field("coordinator_epoch", "int32", 1, 2),
        Field("transaction_version", "int8", 2, 2),
    )


class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("markers", WritableTxnMarker, 1, 2, array=True),)


class WritableTxnMarkerPartitionResult(Message):
    partition_index: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1, 2),
        Field("error_code", "int16", 1, 2),
    )


class WritableTxnMarkerTopicResult(Message):
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, 2),
        Field("partitions", WritableTxnMarkerPartitionResult, 1, 2, array=True),
    )


class WritableTxnMarkerResult(Message):
    producer_id: int = 0
    topics: list[WritableTxnMarkerTopicResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", 1, 2),
        Field("topics", WritableTxnMarkerTopicResult, 1, 2, array=True),
    )


class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("markers", WritableTxnMarkerResult, 1, 2, array=True),)


REQUEST = WriteTxnMarkersRequest
RESPONSE = WriteTxnMarkersResponse
