"""What DescribeProducers answers about the producers of a partition."""

from __future__ import annotations

from typing import Any

from barnabas.errors import ErrorCode
from barnabas.metadata.records import PartitionChangeRecord
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest


def describe(stage: Any, topic: str, *indexes: int) -> list[Any]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(indexes))])
    (answer,) = stage.ask(request, 0).topics
    assert answer.name == topic
    assert [part.partition_index for part in answer.partitions] == list(indexes)
    partitions: list[Any] = answer.partitions
    return partitions


def test_producers_with_their_last_sequences(stage: Any) -> None:
    stage.create("t", 2)
    stage.append("t", 3, producer_id=7, producer_epoch=1, base_sequence=0)
    stage.append("t", 2, producer_id=7, producer_epoch=1, base_sequence=3)
    stage.append("t", 1)
    written, empty = describe(stage, "t", 0, 1)
    assert (written.error_code, written.error_message) == (ErrorCode.NONE, None)
    (state,) = written.active_producers
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (7, 1, 4)
    assert state.last_timestamp == stage.clock.now_ms()
    assert (state.coordinator_epoch, state.current_txn_start_offset) == (-1, -1)
    assert (empty.error_code, empty.active_producers) == (ErrorCode.NONE, [])


def test_an_open_transaction_is_listed_with_its_start(stage: Any) -> None:
    stage.create("t")
    stage.append("t", 4)
    stage.append("t", 1, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    (part,) = describe(stage, "t", 0)
    assert part.active_producers[0].current_txn_start_offset == 4


def test_a_follower_answers_as_well(stage: Any) -> None:
    stage.create("t")
    stage.append("t", 1, producer_id=7, producer_epoch=0, base_sequence=0)
    topic = stage.image.topic("t")
    change = PartitionChangeRecord(topic.id, 0, leader=-1)
    image, difference = stage.image.apply_and_compare([change])
    stage.replicas.follow(image, difference)
    assert not stage.replicas.get("t", 0).is_leader
    (part,) = describe(stage, "t", 0)
    assert [state.producer_id for state in part.active_producers] == [7]


def test_partitions_that_cannot_be_described(stage: Any) -> None:
    stage.create("t")
    assert describe(stage, "t", 1)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(stage, "gone", 0)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    refused = describe(stage, "no spaces", 0)[0]
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refused.error_message


def test_a_log_that_failed(stage: Any) -> None:
    stage.create("t")
    log = stage.replicas.leader("t", 0).log
    log.storage_error(OSError(5, "Input/output error"))
    assert describe(stage, "t", 0)[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
