"""Settings of one consumer group on a broker with bounds of its own."""

import pytest

from barnabas.config.definition import ConfigError
from barnabas.config.group import GROUP_KEYS, GroupConfig, group_config, validate_group_overrides
from barnabas.config.values import BrokerConfig
from barnabas.errors import ErrorCode

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
BROKER = BrokerConfig(
    {
        "group.consumer.session.timeout.ms": "2000",
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.max.session.timeout.ms": "9000",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.max.heartbeat.interval.ms": "5000",
    }
)


def test_a_group_has_what_it_sets_and_the_brokers_settings_otherwise() -> None:
    assert group_config(BROKER, {}) == GroupConfig(2000, 500)
    assert group_config(BROKER, {SESSION: "3000"}) == GroupConfig(3000, 500)
    assert group_config(BROKER, {SESSION: "3000", HEARTBEAT: "700"}) == GroupConfig(3000, 700)


def test_a_setting_older_than_the_bounds_is_moved_within_them() -> None:
    assert group_config(BROKER, {SESSION: "60000", HEARTBEAT: "1"}) == GroupConfig(9000, 100)


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {SESSION: "1000"},
        {SESSION: "9000"},
        {HEARTBEAT: "100"},
        {HEARTBEAT: "1999"},
        {SESSION: "5001", HEARTBEAT: "5000"},
        {"consumer.assignment.interval.ms": "0"},
    ],
    ids=str,
)
def test_settings_within_the_bounds(overrides: dict[str, str]) -> None:
    validate_group_overrides(overrides, BROKER)


@pytest.mark.parametrize(
    "overrides",
    [
        {SESSION: "999"},
        {SESSION: "9001"},
        {SESSION: "soon"},
        {SESSION: "0"},
        {HEARTBEAT: "99"},
        {HEARTBEAT: "5001"},
        {HEARTBEAT: "2000"},  # as long as the broker's session timeout
        {SESSION: "4000", HEARTBEAT: "4000"},
        {"consumer.assignment.interval.ms": "15001"},
        {"share.session.timeout.ms": "45000"},
    ],
    ids=str,
)
def test_settings_that_a_group_may_not_have(overrides: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as refused:
        validate_group_overrides(overrides, BROKER)
    assert refused.value.code is ErrorCode.INVALID_CONFIG


def test_every_setting_inherits_from_one_of_the_broker() -> None:
    for key in GROUP_KEYS.values():
        assert BrokerConfig({})[key.synonyms[0]] == key.default
