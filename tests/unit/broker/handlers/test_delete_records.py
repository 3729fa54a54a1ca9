"""How DeleteRecords moves the start of a log."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

HIGH_WATERMARK = -1


def delete(stage: Any, topic: str, offset: int, index: int = 0, version: int = 2) -> tuple[int, int]:
    partition = DeleteRecordsPartition(partition_index=index, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[partition])])
    (answer,) = stage.ask(request, version).topics
    assert answer.name == topic
    (result,) = answer.partitions
    assert result.partition_index == index
    return result.error_code, result.low_watermark


@pytest.mark.parametrize("version", range(3))
def test_the_log_starts_at_the_offset(stage: Any, version: int) -> None:
    stage.create("t")
    stage.append("t", 10)
    assert delete(stage, "t", 4, version=version) == (ErrorCode.NONE, 4)
    assert stage.replicas.leader("t", 0).log.log_start_offset == 4


def test_minus_one_is_the_high_watermark(stage: Any) -> None:
    stage.create("t")
    stage.append("t", 10)
    assert delete(stage, "t", HIGH_WATERMARK) == (ErrorCode.NONE, 10)


def test_an_offset_that_is_gone_already_changes_nothing(stage: Any) -> None:
    stage.create("t")
    stage.append("t", 10)
    delete(stage, "t", 6)
    assert delete(stage, "t", 2) == (ErrorCode.NONE, 6)


@pytest.mark.parametrize("offset", [11, -2])
def test_an_offset_outside_the_log_is_refused(stage: Any, offset: int) -> None:
    stage.create("t")
    stage.append("t", 10)
    assert delete(stage, "t", offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert stage.replicas.leader("t", 0).log.log_start_offset == 0


def test_partitions_that_do_not_exist(stage: Any) -> None:
    stage.create("t")
    assert delete(stage, "gone", 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(stage, "t", 0, index=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_a_compacted_topic_keeps_its_records(stage: Any) -> None:
    stage.create("compacted", cleanup_policy="compact")
    stage.create("both", cleanup_policy="compact,delete")
    stage.append("both", 2)
    assert delete(stage, "compacted", HIGH_WATERMARK) == (ErrorCode.POLICY_VIOLATION, -1)
    assert delete(stage, "both", HIGH_WATERMARK) == (ErrorCode.NONE, 2)


def test_clients_cannot_delete_records_of_internal_topics(stage: Any) -> None:
    stage.create("__consumer_offsets")
    assert delete(stage, "__consumer_offsets", HIGH_WATERMARK) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
