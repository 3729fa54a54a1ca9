"""The settings of one topic, typed and ready for the log layer. Pure values, no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from barnabas.config.broker import BROKER_KEYS, MILLISECONDS_PER_UNIT
from barnabas.config.definition import LONG_MAX, ConfigError, ConfigKey
from barnabas.config.keys_topic import TOPIC_KEYS
from barnabas.config.parsing import parse

__all__ = [
    "LONG_MAX",
    "TOPIC_KEYS",
    "TopicConfig",
    "inherited_value",
    "topic_config",
    "topic_defaults",
    "topic_key",
    "with_overrides",
]


@dataclass(frozen=True, slots=True)
class TopicConfig:
    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * 24 * 3600 * 1000
    retention_bytes: int = -1
    cleanup_delete: bool = True
    cleanup_compact: bool = False
    delete_retention_ms: int = 24 * 3600 * 1000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    max_message_bytes: int = 1024 * 1024 + 12
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = 3600 * 1000
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    min_insync_replicas: int = 1
    preallocate: bool = False
    unclean_leader_election_enable: bool = False
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    leader_replication_throttled_replicas: tuple[str, ...] = ()


# Keys that are checked and described, but have no effect on the log layer.
_WITHOUT_FIELD = frozenset(name for name, key in TOPIC_KEYS.items() if not key.honoured)


def topic_config(broker_values: Mapping[str, Any], overrides: Mapping[str, str]) -> TopicConfig:
    """The settings of a topic with these overrides on a broker with these values, text or typed.

    A caller with many topics computes `topic_defaults` once and calls `with_overrides`."""
    return with_overrides(topic_defaults(broker_values), overrides)


def topic_defaults(broker_values: Mapping[str, Any]) -> TopicConfig:
    """The settings of a topic without overrides."""
    fields: dict[str, Any] = {}
    for key in TOPIC_KEYS.values():
        if key.synonyms and key.honoured:
            _put_field(fields, key.name, inherited_value(key, broker_values))
    return TopicConfig(**fields)


def with_overrides(defaults: TopicConfig, overrides: Mapping[str, str]) -> TopicConfig:
    """`defaults` with a topic's own settings; the same object when there are none."""
    if not overrides:
        return defaults
    fields: dict[str, Any] = {}
    for name, text in overrides.items():
        key = topic_key(name)
        if name not in _WITHOUT_FIELD:
            _put_field(fields, name, parse(key, text))
        else:
            parse(key, text)
    if "internal.segment.bytes" in overrides:
        fields["segment_bytes"] = parse(
            TOPIC_KEYS["internal.segment.bytes"], overrides["internal.segment.bytes"]
        )
    return replace(defaults, **fields)


def topic_key(name: str) -> ConfigKey:
    key = TOPIC_KEYS.get(name)
    if key is None:
        raise ConfigError(f"{name} is not a topic setting.")
    return key


def inherited_value(key: ConfigKey, broker_values: Mapping[str, Any]) -> Any:
    """What a broker with these values gives a topic that does not set `key` itself."""
    for synonym in key.synonyms:
        value = broker_values.get(synonym)
        if isinstance(value, str):
            value = parse(BROKER_KEYS[synonym], value)
        if value is not None:
            return _in_topic_unit(key, synonym, value)
    return key.default


def _in_topic_unit(key: ConfigKey, synonym: str, value: Any) -> Any:
    if key.name == "retention.ms" and value < 0:
        return -1
    unit_ms = MILLISECONDS_PER_UNIT.get(synonym)
    return value if unit_ms is None else value * unit_ms


def _put_field(fields: dict[str, Any], name: str, value: Any) -> None:
    if name == "cleanup.policy":
        fields["cleanup_delete"] = "delete" in value
        fields["cleanup_compact"] = "compact" in value
    elif name != "internal.segment.bytes":
        fields[name.replace(".", "_")] = value
