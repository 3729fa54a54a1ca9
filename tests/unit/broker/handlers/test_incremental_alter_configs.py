"""How IncrementalAlterConfigs changes single configs, lists and logger levels."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.broker.resources import CONFIGS_MAX
from barnabas.errors import ErrorCode
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)


def resource(kind: int, name: str, *changes: tuple[str, int, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


def alter(stage: Any, *resources: AlterConfigsResource, version: int = 1, **fields: bool) -> list[int]:
    response = stage.ask(IncrementalAlterConfigsRequest(resources=list(resources), **fields), version)
    answered = [(answer.resource_type, answer.resource_name) for answer in response.responses]
    assert answered == [(resource.resource_type, resource.resource_name) for resource in resources]
    assert all((answer.error_message is None) == (answer.error_code == 0) for answer in response.responses)
    return [answer.error_code for answer in response.responses]


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("barnabas.tests.altered")
    yield logger
    logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize("version", range(2))
def test_only_what_is_named_changes(stage: Any, version: int) -> None:
    stage.create("t", retention_ms="1000", flush_ms="10")
    changes = resource(TOPIC, "t", ("segment.bytes", SET, "2000000"), ("flush.ms", DELETE, None))
    assert alter(stage, changes, version=version) == [ErrorCode.NONE]
    assert stage.image.topic_config("t") == {"retention.ms": "1000", "segment.bytes": "2000000"}
    assert stage.replicas.leader("t", 0).log.config.segment_bytes == 2_000_000


def test_a_resource_with_too_many_configs_is_refused(stage: Any) -> None:
    stage.create("t")
    many = [(f"unknown-{number}", DELETE, None) for number in range(CONFIGS_MAX + 1)]
    allowed, refused = resource(TOPIC, "t", *many[:-1]), resource(BROKER, "1", *many)
    assert alter(stage, allowed, refused) == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]


def test_a_resource_with_very_long_configs_is_refused(stage: Any) -> None:
    """A broker may have settings that no table knows."""
    long = [(f"unknown-{number:02d}", SET, "x" * 32_757) for number in range(32)]
    assert alter(stage, resource(BROKER, "1", *long)) == [ErrorCode.NONE]
    refused = resource(BROKER, "1", *long, ("unknown-32", SET, "x" * 100))
    assert alter(stage, refused) == [ErrorCode.INVALID_REQUEST]


def test_lists_grow_and_shrink(stage: Any) -> None:
    stage.create("t")
    assert alter(stage, resource(TOPIC, "t", ("cleanup.policy", APPEND, "compact"))) == [ErrorCode.NONE]
    assert stage.image.topic_config("t") == {"cleanup.policy": "delete,compact"}
    assert alter(stage, resource(TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete"))) == [ErrorCode.NONE]
    assert stage.image.topic_config("t") == {"cleanup.policy": "compact"}


def test_brokers_and_the_cluster_default(stage: Any) -> None:
    own = resource(BROKER, "1", ("log.retention.ms", SET, "5000"))
    default = resource(BROKER, "", ("log.cleaner.threads", SET, "2"))
    assert alter(stage, own, default) == [ErrorCode.NONE, ErrorCode.NONE]
    assert stage.image.config(BROKER, "1") == {"log.retention.ms": "5000"}
    assert stage.image.config(BROKER, "") == {"log.cleaner.threads": "2"}


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (resource(TOPIC, "gone", ("flush.ms", SET, "1")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (resource(TOPIC, "t", ("flush.ms", SET, "soon")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", ("no.such.key", SET, "1")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", ("flush.ms", APPEND, "1")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", ("flush.ms", SET, None)), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "t", ("flush.ms", 4, "1")), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "t", ("flush.ms", SET, "1"), ("flush.ms", DELETE, None)), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "2", ("log.retention.ms", SET, "1")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "1", ("num.partitions", SET, "1")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "", ("listener.name.x.ssl.keystore.type", SET, "PEM")), ErrorCode.INVALID_REQUEST),
        (resource(99, "x", ("a", SET, "b")), ErrorCode.INVALID_REQUEST),
    ],
)
def test_one_bad_resource_leaves_the_others_alone(
    stage: Any, bad: AlterConfigsResource, code: ErrorCode
) -> None:
    stage.create("t", retention_ms="1000")
    stage.create("fine")
    assert alter(stage, bad, resource(TOPIC, "fine", ("flush.ms", SET, "10"))) == [code, ErrorCode.NONE]
    assert stage.image.topic_config("t") == {"retention.ms": "1000"}
    assert stage.image.topic_config("fine") == {"flush.ms": "10"}


def test_a_resource_changes_as_a_whole_or_not_at_all(stage: Any) -> None:
    stage.create("t")
    changes = resource(TOPIC, "t", ("flush.ms", SET, "10"), ("retention.ms", SET, "soon"))
    assert alter(stage, changes) == [ErrorCode.INVALID_CONFIG]
    assert stage.image.topic_config("t") == {}


def test_a_resource_given_twice_stays_as_it_is(stage: Any) -> None:
    stage.create("t")
    twice = resource(TOPIC, "t", ("flush.ms", SET, "10"))
    assert alter(stage, twice, twice) == [ErrorCode.INVALID_REQUEST] * 2
    assert stage.image.topic_config("t") == {}


def test_validation_changes_nothing(stage: Any, logger: logging.Logger) -> None:
    stage.create("t")
    topic = resource(TOPIC, "t", ("flush.ms", SET, "10"))
    levels = resource(BROKER_LOGGER, "1", (logger.name, SET, "DEBUG"))
    assert alter(stage, topic, levels, validate_only=True) == [ErrorCode.NONE, ErrorCode.NONE]
    assert stage.image.topic_config("t") == {}
    assert logger.level == logging.NOTSET


def test_levels_of_loggers(stage: Any, logger: logging.Logger) -> None:
    assert alter(stage, resource(BROKER_LOGGER, "1", (logger.name, SET, "ERROR"))) == [ErrorCode.NONE]
    assert logger.level == logging.ERROR
    assert alter(stage, resource(BROKER_LOGGER, "1", (logger.name, DELETE, None))) == [ErrorCode.NONE]
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("broker", "change", "code"),
    [
        ("1", ("barnabas.tests.altered", SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        ("1", ("barnabas.tests.absent", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        ("1", ("barnabas.tests.altered", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", ("barnabas.tests.altered", SET, None), ErrorCode.INVALID_REQUEST),
        ("1", ("barnabas.tests.altered", 9, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", ("root", DELETE, None), ErrorCode.INVALID_REQUEST),
        ("2", ("barnabas.tests.altered", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("", ("barnabas.tests.altered", SET, "INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_changes_of_levels_that_are_refused(
    stage: Any, logger: logging.Logger, broker: str, change: tuple[str, int, str | None], code: ErrorCode
) -> None:
    good = (logger.name + ".child", SET, "DEBUG")
    child = logging.getLogger(logger.name + ".child")
    assert alter(stage, resource(BROKER_LOGGER, broker, good, change)) == [code]
    assert child.level == logging.NOTSET


def test_without_a_controller_every_resource_gets_an_error(stage: Any) -> None:
    stage.create("t")
    stage.run(stage.controller.step_down())
    assert alter(stage, resource(TOPIC, "t", ("flush.ms", SET, "1"))) == [ErrorCode.NOT_CONTROLLER]
