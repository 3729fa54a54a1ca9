"""What CreateTopics creates, refuses and answers, in every version."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.ids import ZERO_UUID
from barnabas.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

VERSIONS = range(2, 8)
TOPIC_SOURCE, STATIC_SOURCE, DEFAULT_SOURCE = 1, 4, 5


def new(name: str, partitions: int = 1, factor: int = 1, **configs: str | None) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )


def assigned(name: str, *assignments: tuple[int, list[int]]) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
    )


def create(stage: Any, *topics: CreatableTopic, version: int = 7, **fields: Any) -> dict[str, Any]:
    response = stage.ask(CreateTopicsRequest(topics=list(topics), **fields), version)
    assert len({topic.name for topic in response.topics}) == len(response.topics)
    return {topic.name: topic for topic in response.topics}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_there_when_the_answer_comes(stage: Any, version: int) -> None:
    result = create(stage, new("events", 3), version=version)["events"]
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    assert len(stage.image.topic("events").partitions) == 3
    assert stage.replicas.leader("events", 2).is_leader
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
    assert result.topic_id == (stage.image.topic("events").id if version >= 7 else ZERO_UUID)


def test_the_answer_lists_every_config_with_its_source(make_stage: Any) -> None:
    stage = make_stage(log_segment_bytes="2000000")
    result = create(stage, new("events", retention_ms="1000"), version=5)["events"]
    configs = {config.name: config for config in result.configs}
    assert list(configs) == sorted(configs)
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("1000", TOPIC_SOURCE)
    assert (configs["segment.bytes"].value, configs["segment.bytes"].config_source) == (
        "2000000",
        STATIC_SOURCE,
    )
    assert (configs["cleanup.policy"].value, configs["cleanup.policy"].config_source) == (
        "delete",
        DEFAULT_SOURCE,
    )
    assert not any(config.read_only or config.is_sensitive for config in configs.values())


def test_minus_one_is_the_default_of_the_broker(make_stage: Any) -> None:
    stage = make_stage(num_partitions="4")
    result = create(stage, new("events", -1, -1))["events"]
    assert (result.num_partitions, result.replication_factor) == (4, 1)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (new("no spaces"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new("taken"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (new("t", 0), ErrorCode.INVALID_PARTITIONS),
        (new("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new("t", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (new("t", retention_ms=None), ErrorCode.INVALID_CONFIG),
        (new("t", no_such_key="1"), ErrorCode.INVALID_CONFIG),
        (assigned("t", (0, [1]), (0, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", (1, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", (0, [9])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_one_bad_topic_leaves_the_others_alone(stage: Any, topic: CreatableTopic, code: ErrorCode) -> None:
    stage.create("taken")
    results = create(stage, topic, new("fine"))
    refused = results[topic.name]
    assert refused.error_code == code
    assert refused.error_message
    assert (refused.num_partitions, refused.configs, refused.topic_id) == (-1, [], ZERO_UUID)
    assert results["fine"].error_code == ErrorCode.NONE
    assert stage.image.topics.keys() == {"taken", "fine"}


def test_a_count_together_with_an_assignment_is_refused(stage: Any) -> None:
    topic = assigned("t", (0, [1]))
    topic.num_partitions = 1
    assert create(stage, topic)["t"].error_code == ErrorCode.INVALID_REQUEST


def test_an_assignment_is_followed(stage: Any) -> None:
    result = create(stage, assigned("t", (1, [1]), (0, [1])))["t"]
    assert (result.error_code, result.num_partitions) == (ErrorCode.NONE, 2)


def test_a_name_given_twice_is_refused_once(stage: Any) -> None:
    results = create(stage, assigned("twice", (0, [1]), (0, [1])), new("once"), new("twice", 2))
    assert results["twice"].error_code == ErrorCode.INVALID_REQUEST
    assert stage.image.topics.keys() == {"once"}


def test_validation_creates_nothing(stage: Any) -> None:
    results = create(stage, new("fine", 2), new("bad", 0), validate_only=True)
    assert (results["fine"].error_code, results["fine"].num_partitions) == (ErrorCode.NONE, 2)
    assert results["bad"].error_code == ErrorCode.INVALID_PARTITIONS
    assert not stage.image.topics


def test_a_controller_that_is_busy_is_not_waited_for_longer_than_asked(stage: Any) -> None:
    async def ask_while_busy() -> Any:
        async with stage.controller._turn:
            return await stage.answer(CreateTopicsRequest(topics=[new("late")], timeout_ms=20), 7)

    (result,) = stage.run(asyncio.wait_for(ask_while_busy(), 30)).topics
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert not stage.image.topics


def test_without_a_controller_every_topic_gets_an_error(stage: Any) -> None:
    stage.run(stage.controller.step_down())
    results = create(stage, new("a"), new("b"))
    assert {result.error_code for result in results.values()} == {ErrorCode.NOT_CONTROLLER}
