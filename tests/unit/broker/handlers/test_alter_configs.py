"""How AlterConfigs replaces all configs of a resource."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8


def resource(kind: int, name: str, *pairs: tuple[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in pairs],
    )


def alter(stage: Any, *resources: AlterConfigsResource, version: int = 2, **fields: bool) -> list[int]:
    response = stage.ask(AlterConfigsRequest(resources=list(resources), **fields), version)
    answered = [(answer.resource_type, answer.resource_name) for answer in response.responses]
    assert answered == [(resource.resource_type, resource.resource_name) for resource in resources]
    assert all((answer.error_message is None) == (answer.error_code == 0) for answer in response.responses)
    return [answer.error_code for answer in response.responses]


@pytest.mark.parametrize("version", range(3))
def test_what_is_not_given_is_removed(stage: Any, version: int) -> None:
    stage.create("t", retention_ms="1000", segment_bytes="2000000")
    changed = resource(TOPIC, "t", ("retention.ms", "5000"), ("flush.ms", "10"))
    assert alter(stage, changed, version=version) == [ErrorCode.NONE]
    assert stage.image.topic_config("t") == {"retention.ms": "5000", "flush.ms": "10"}
    assert stage.replicas.leader("t", 0).log.config.retention_ms == 5000


def test_brokers_and_the_cluster_default(stage: Any) -> None:
    own = resource(BROKER, "1", ("log.retention.ms", "5000"))
    default = resource(BROKER, "", ("log.cleaner.threads", "2"))
    assert alter(stage, own, default) == [ErrorCode.NONE, ErrorCode.NONE]
    assert stage.image.config(BROKER, "1") == {"log.retention.ms": "5000"}
    assert stage.image.config(BROKER, "") == {"log.cleaner.threads": "2"}
    assert alter(stage, resource(BROKER, "1")) == [ErrorCode.NONE]
    assert stage.image.config(BROKER, "1") == {}


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (resource(TOPIC, "gone"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (resource(TOPIC, "t", ("retention.ms", "soon")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", ("flush.ms", "10"), ("no.such.key", "1")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", ("retention.ms", None)), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "t", ("flush.ms", "1"), ("flush.ms", "2")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "2", ("log.retention.ms", "5000")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "1", ("num.partitions", "5")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER_LOGGER, "1", ("root", "WARN")), ErrorCode.INVALID_REQUEST),
        (resource(99, "x"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_one_bad_resource_leaves_the_others_alone(
    stage: Any, bad: AlterConfigsResource, code: ErrorCode
) -> None:
    stage.create("t", retention_ms="1000")
    stage.create("fine")
    assert alter(stage, bad, resource(TOPIC, "fine", ("flush.ms", "10"))) == [code, ErrorCode.NONE]
    assert stage.image.topic_config("t") == {"retention.ms": "1000"}
    assert stage.image.topic_config("fine") == {"flush.ms": "10"}


def test_a_resource_given_twice_stays_as_it_is(stage: Any) -> None:
    stage.create("t")
    twice = resource(TOPIC, "t", ("flush.ms", "10"))
    assert alter(stage, twice, twice) == [ErrorCode.INVALID_REQUEST] * 2
    assert stage.image.topic_config("t") == {}


def test_validation_changes_nothing(stage: Any) -> None:
    stage.create("t", retention_ms="1000")
    good, bad = resource(TOPIC, "t", ("flush.ms", "10")), resource(TOPIC, "gone")
    codes = alter(stage, good, bad, validate_only=True)
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert stage.image.topic_config("t") == {"retention.ms": "1000"}


def test_without_a_controller_every_resource_gets_an_error(stage: Any) -> None:
    stage.create("t")
    stage.run(stage.controller.step_down())
    assert alter(stage, resource(TOPIC, "t")) == [ErrorCode.NOT_CONTROLLER]
