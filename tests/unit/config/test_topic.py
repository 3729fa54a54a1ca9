"""From broker values and overrides to the settings of a topic."""

import dataclasses
from typing import Any

import pytest

from barnabas.config.broker import BROKER_KEYS
from barnabas.config.definition import ConfigError
from barnabas.config.topic import TOPIC_KEYS, TopicConfig, topic_config, topic_defaults, with_overrides


def test_the_table_and_the_defaults_of_the_class_agree() -> None:
    assert topic_config({}, {}) == TopicConfig()
    assert topic_config({name: key.default for name, key in BROKER_KEYS.items()}, {}) == TopicConfig()


@pytest.mark.parametrize(
    ("overrides", "field", "expected"),
    [
        ({"retention.ms": "5"}, "retention_ms", 5),
        ({"segment.bytes": "2000000"}, "segment_bytes", 2_000_000),
        ({"internal.segment.bytes": "100"}, "segment_bytes", 100),
        ({"internal.segment.bytes": "100", "segment.bytes": "2000000"}, "segment_bytes", 100),
        ({"segment.bytes": "2000000", "internal.segment.bytes": "100"}, "segment_bytes", 100),
        ({"cleanup.policy": "compact"}, "cleanup_delete", False),
        ({"cleanup.policy": "compact"}, "cleanup_compact", True),
        ({"cleanup.policy": "compact,delete"}, "cleanup_delete", True),
        ({"cleanup.policy": ""}, "cleanup_delete", False),
        ({"preallocate": "true"}, "preallocate", True),
        ({"message.timestamp.type": "LogAppendTime"}, "message_timestamp_type", "LogAppendTime"),
        ({"min.cleanable.dirty.ratio": "0.1"}, "min_cleanable_dirty_ratio", 0.1),
    ],
)
def test_an_override_sets_its_field(overrides: dict[str, str], field: str, expected: Any) -> None:
    config = topic_config({}, overrides)
    assert getattr(config, field) == expected


def test_an_override_replaces_the_value_of_the_broker_and_no_other() -> None:
    broker = {
        "log.retention.minutes": "1",
        "log.segment.bytes": 3_000_000,
        "log.cleanup.policy": ("compact",),
    }
    config = topic_config(broker, {"retention.ms": "7"})
    assert config == dataclasses.replace(
        TopicConfig(), retention_ms=7, segment_bytes=3_000_000, cleanup_delete=False, cleanup_compact=True
    )


def test_every_honoured_key_has_a_field() -> None:
    fields = {field.name for field in dataclasses.fields(TopicConfig)}
    special = {"cleanup.policy", "internal.segment.bytes"}
    for name, key in TOPIC_KEYS.items():
        assert (name.replace(".", "_") in fields) == (key.honoured and name not in special), name


def test_without_overrides_nothing_is_copied() -> None:
    defaults = topic_defaults({})
    assert with_overrides(defaults, {}) is defaults


def test_a_key_without_a_field_is_still_checked() -> None:
    assert topic_config({}, {"local.retention.ms": "5"}) == TopicConfig()
    with pytest.raises(ConfigError, match=r"local\.retention\.ms"):
        topic_config({}, {"local.retention.ms": "-3"})


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"log\.segment\.bytes is not a topic setting"):
        topic_config({}, {"log.segment.bytes": "2000000"})
