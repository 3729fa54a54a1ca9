"""How CreatePartitions makes topics grow."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)

VERSIONS = range(4)


def grow(name: str, count: int, *assignments: list[int]) -> CreatePartitionsTopic:
    given = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=given or None)


def ask(stage: Any, *topics: CreatePartitionsTopic, version: int = 3, **fields: Any) -> dict[str, Any]:
    response = stage.ask(CreatePartitionsRequest(topics=list(topics), **fields), version)
    return {result.name: result for result in response.results}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_grows_to_the_count(stage: Any, version: int) -> None:
    stage.create("t")
    stage.append("t", 5)
    result = ask(stage, grow("t", 3), version=version)["t"]
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    assert len(stage.image.topic("t").partitions) == 3
    assert stage.replicas.leader("t", 0).log.log_end_offset == 5
    assert stage.replicas.leader("t", 2).log.log_end_offset == 0


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (grow("gone", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (grow("t", 2), ErrorCode.INVALID_PARTITIONS),
        (grow("t", 1), ErrorCode.INVALID_PARTITIONS),
        (grow("t", 4, [1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grow("t", 3, [9]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grow("t", 3, [1, 9]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_one_bad_topic_leaves_the_others_alone(
    stage: Any, topic: CreatePartitionsTopic, code: ErrorCode
) -> None:
    stage.create("t", 2)
    stage.create("fine")
    results = ask(stage, topic, grow("fine", 2, [1]))
    assert results[topic.name].error_code == code
    assert results[topic.name].error_message
    assert results["fine"].error_code == ErrorCode.NONE
    assert len(stage.image.topic("t").partitions) == 2
    assert len(stage.image.topic("fine").partitions) == 2


def test_a_topic_named_twice_is_refused_once(stage: Any) -> None:
    stage.create("t")
    response = stage.ask(CreatePartitionsRequest(topics=[grow("t", 2), grow("t", 3)]), 3)
    assert [(r.name, r.error_code) for r in response.results] == [("t", ErrorCode.INVALID_REQUEST)]
    assert len(stage.image.topic("t").partitions) == 1


def test_validation_changes_nothing(stage: Any) -> None:
    stage.create("t")
    results = ask(stage, grow("t", 2), grow("gone", 2), validate_only=True)
    assert results["t"].error_code == ErrorCode.NONE
    assert results["gone"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(stage.image.topic("t").partitions) == 1


def test_without_a_controller_every_topic_gets_an_error(stage: Any) -> None:
    stage.create("t")
    stage.run(stage.controller.step_down())
    assert ask(stage, grow("t", 2))["t"].error_code == ErrorCode.NOT_CONTROLLER
