"""What DescribeConfigs answers, without the wire: values, sources and synonyms. Pure functions."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from barnabas.config.broker import BROKER_KEYS, base_name, broker_synonyms
from barnabas.config.definition import READ_ONLY, ConfigKey, Source, Type
from barnabas.config.group import GROUP_KEYS
from barnabas.config.parsing import parse, render
from barnabas.config.topic import TOPIC_KEYS, inherited_value
from barnabas.config.values import BrokerConfig


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: Source


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: Source
    read_only: bool
    sensitive: bool
    type: Type
    synonyms: tuple[Synonym, ...]
    documentation: str | None


def describe_topic(
    broker_config: BrokerConfig,
    cluster_dynamic: Mapping[str, str],
    broker_dynamic: Mapping[str, str],
    overrides: Mapping[str, str],
) -> list[ConfigEntry]:
    """Every setting of a topic that has these overrides, on a broker with these dynamic settings."""
    config = _current(broker_config, cluster_dynamic, broker_dynamic)
    return [
        _inheriting_entry(key, config, overrides, Source.TOPIC)
        for name, key in TOPIC_KEYS.items()
        if not key.internal or name in overrides
    ]


def describe_group(
    broker_config: BrokerConfig,
    cluster_dynamic: Mapping[str, str],
    broker_dynamic: Mapping[str, str],
    overrides: Mapping[str, str],
) -> list[ConfigEntry]:
    """Every setting of a group that has these overrides, whether the group exists or not."""
    config = _current(broker_config, cluster_dynamic, broker_dynamic)
    return [_inheriting_entry(key, config, overrides, Source.GROUP) for key in GROUP_KEYS.values()]


def describe_broker(
    broker_config: BrokerConfig, cluster_dynamic: Mapping[str, str], broker_dynamic: Mapping[str, str]
) -> list[ConfigEntry]:
    """Every setting of one broker; settings that are in no table come last."""
    config = _current(broker_config, cluster_dynamic, broker_dynamic)
    given = {**config.properties, **cluster_dynamic, **broker_dynamic}
    names = [name for name, key in BROKER_KEYS.items() if not key.internal or name in given]
    names += [name for name in given if name not in BROKER_KEYS]
    return [_broker_entry(name, config.get(name), _broker_layers(name, config)) for name in names]


def describe_cluster_default(cluster_dynamic: Mapping[str, str]) -> list[ConfigEntry]:
    """The dynamic defaults of all brokers: only what has been set."""
    return [
        _broker_entry(name, text, (Synonym(name, text, Source.DYNAMIC_DEFAULT_BROKER),))
        for name, text in cluster_dynamic.items()
    ]


def _current(
    broker_config: BrokerConfig, cluster_dynamic: Mapping[str, str], broker_dynamic: Mapping[str, str]
) -> BrokerConfig:
    if (broker_config.cluster_dynamic, broker_config.broker_dynamic) == (cluster_dynamic, broker_dynamic):
        return broker_config
    return broker_config.with_dynamic(cluster_dynamic, broker_dynamic)


def _inheriting_entry(
    key: ConfigKey, config: BrokerConfig, overrides: Mapping[str, str], own: Source
) -> ConfigEntry:
    """A setting of a topic or a group: its own, or else the broker's."""
    synonyms = _broker_layers(key.synonyms[0], config) if key.synonyms else ()
    if key.name in overrides:
        value = render(parse(key, overrides[key.name]))
        synonyms = (Synonym(key.name, value, own), *synonyms)
    else:
        value = render(inherited_value(key, config))
    return ConfigEntry(key.name, value, _source(synonyms), False, False, key.type, synonyms, key.doc)


def _broker_entry(name: str, value: Any, synonyms: tuple[Synonym, ...]) -> ConfigEntry:
    key = BROKER_KEYS.get(base_name(name))
    if key is None:
        # A setting that is in no table may be a secret.
        hidden = tuple(synonym._replace(value=None) for synonym in synonyms)
        return ConfigEntry(name, None, _source(synonyms), True, True, Type.UNKNOWN, hidden, None)
    if key.sensitive:
        synonyms = tuple(synonym._replace(value=None) for synonym in synonyms)
    shown = None if key.sensitive else render(value)
    # Kafka reports a listener's own setting as read-only even where it may be changed.
    read_only = key.mode == READ_ONLY or name not in BROKER_KEYS
    return ConfigEntry(name, shown, _source(synonyms), read_only, key.sensitive, key.type, synonyms, key.doc)


def _source(synonyms: tuple[Synonym, ...]) -> Source:
    return synonyms[0].source if synonyms else Source.DEFAULT


def _broker_layers(name: str, config: BrokerConfig) -> tuple[Synonym, ...]:
    """Every value that is set for a broker key, the one in effect first.

    As in Kafka the list begins with `name` itself: when only log.retention.hours is set,
    log.retention.ms (and so retention.ms) is described as a default without synonyms."""
    layers = list(_all_layers(broker_synonyms(name), config))
    start = next((at for at, synonym in enumerate(layers) if synonym.name == name), len(layers))
    return tuple(layers[start:])


def _all_layers(names: tuple[str, ...], config: BrokerConfig) -> Iterator[Synonym]:
    layers = (
        (Source.DYNAMIC_BROKER, config.broker_dynamic),
        (Source.DYNAMIC_DEFAULT_BROKER, config.cluster_dynamic),
        (Source.STATIC_BROKER, config.properties),
    )
    for source, layer in layers:
        for name in names:
            if name in layer:
                yield Synonym(name, layer[name], source)
    for name in names:
        key = BROKER_KEYS.get(name)
        if key is not None and key.default is not None:
            yield Synonym(name, render(key.default), Source.DEFAULT)
