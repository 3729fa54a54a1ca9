"""The settings of one consumer group, which may change while it runs. What a group does not set, it takes
from the broker.

Pure values, no I/O. Settings of share and streams groups, which this release does not serve, are refused."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.config.definition import (
    INT,
    ConfigError,
    ConfigKey,
    accepted,
    at_least,
    honoured,
    inherits,
    table,
)
from barnabas.config.parsing import parse

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"

GROUP_KEYS = table(
    inherits(honoured(INT, SESSION_TIMEOUT, 45_000, at_least(1)), "group.consumer.session.timeout.ms"),
    "Silence after which a member of this consumer group is removed.",
    inherits(honoured(INT, HEARTBEAT_INTERVAL, 5000, at_least(1)), "group.consumer.heartbeat.interval.ms"),
    "Time between two heartbeats of a member of this consumer group.",
    inherits(
        accepted(INT, "consumer.assignment.interval.ms", 1000, at_least(0)),
        "group.consumer.assignment.interval.ms",
    ),
    "Shortest time between two assignments of this consumer group.",
)

# The broker keys that give the lowest and the highest value for a group.
_BOUNDS = {
    SESSION_TIMEOUT: ("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    HEARTBEAT_INTERVAL: (
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    "consumer.assignment.interval.ms": (
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
}


class GroupConfig(NamedTuple):
    session_timeout_ms: int
    heartbeat_interval_ms: int


def group_config(broker_values: Mapping[str, Any], overrides: Mapping[str, str]) -> GroupConfig:
    """The settings of a group with these overrides. If the broker has narrower bounds by now, the nearest
    value within them counts."""
    return GroupConfig(
        _value(GROUP_KEYS[SESSION_TIMEOUT], broker_values, overrides),
        _value(GROUP_KEYS[HEARTBEAT_INTERVAL], broker_values, overrides),
    )


def _value(key: ConfigKey, broker_values: Mapping[str, Any], overrides: Mapping[str, str]) -> int:
    text = overrides.get(key.name)
    if text is None:
        inherited: int = broker_values[key.synonyms[0]]
        return inherited
    low, high = _bounds(key, broker_values)
    return int(min(max(parse(key, text), low), high))


def validate_group_overrides(overrides: Mapping[str, str], broker_values: Mapping[str, Any]) -> None:
    """ConfigError if a group may not have these settings on a broker with these values."""
    for name, text in overrides.items():
        key = GROUP_KEYS.get(name)
        if key is None:
            raise ConfigError(f"{name} is not a group setting.")
        value = parse(key, text)
        low, high = _bounds(key, broker_values)
        if not low <= value <= high:
            raise ConfigError(
                f"{name} cannot be {value}: {' and '.join(_BOUNDS[name])} allow from {low} to {high}."
            )
    session_ms, heartbeat_ms = group_config(broker_values, overrides)
    if overrides and session_ms <= heartbeat_ms:
        raise ConfigError(
            f"{SESSION_TIMEOUT} ({session_ms}) must be greater than {HEARTBEAT_INTERVAL} ({heartbeat_ms})."
        )


def _bounds(key: ConfigKey, broker_values: Mapping[str, Any]) -> tuple[int, int]:
    low, high = _BOUNDS[key.name]
    return broker_values[low], broker_values[high]
