"""Decisions about configs: replace all overrides of a resource, or change some. Pure.

One resource gets one answer: if one of its changes is refused, none of them is made. The config package knows
which keys exist, which values are valid, and what an operation does."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from barnabas.config.alter import (
    Operation,
    alter_incremental,
    validate_broker_dynamic,
    validate_topic_overrides,
)
from barnabas.config.broker import BROKER_KEYS, is_secret
from barnabas.config.definition import ConfigError, ConfigKey
from barnabas.config.group import GROUP_KEYS, validate_group_overrides
from barnabas.config.parsing import render
from barnabas.config.topic import TOPIC_KEYS, TopicConfig, inherited_value
from barnabas.config.values import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.decision import Decision, invalid_request
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, ConfigResource
from barnabas.metadata.records import ConfigRecord, MetadataRecord, PartitionChangeRecord

MIN_ISR = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"
_REFUSED_RESOURCES = {8: "broker loggers", 16: "client metrics subscriptions"}
_TABLES: Mapping[int, Mapping[str, ConfigKey]] = {
    TOPIC_RESOURCE: TOPIC_KEYS,
    BROKER_RESOURCE: BROKER_KEYS,
    GROUP_RESOURCE: GROUP_KEYS,
}


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One incremental operation; `operation` is Kafka's number, see barnabas.config.alter.Operation."""

    key: str
    operation: int
    value: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """Checks overrides against this broker's current configuration."""

    current: Callable[[], BrokerConfig]

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The settings of a topic with these overrides."""
        return self.current().topic_config(overrides)

    def check_topic(self, overrides: Mapping[str, str]) -> None:
        validate_topic_overrides(overrides, self.current())

    def check_group(self, overrides: Mapping[str, str]) -> None:
        validate_group_overrides(overrides, self.current())

    def check_broker(self, name: str, settings: Mapping[str, str]) -> None:
        """Refuse invalid settings of one broker, or of all brokers if the name is empty."""
        validate_broker_dynamic(settings, per_broker=name != "")
        config = self.current()
        _refuse_open_secrets(settings, config)
        try:
            # Values that are valid alone may contradict the rest of the configuration.
            if name == "":
                config.check_change(config.with_dynamic(settings, config.broker_dynamic))
            elif name == str(config.node_id):
                changed = config.with_dynamic(config.cluster_dynamic, settings)
                config.check_change(changed)
                _check_tls(config, changed)
        except ConfigError as error:
            raise invalid_request(error.message) from error

    def inherited(self, resource_type: int, key: str) -> str | None:
        """The value, as text, of a key that a resource does not override."""
        config = self.current()
        if resource_type == TOPIC_RESOURCE:
            return render(inherited_value(TOPIC_KEYS[key], config)) if key in TOPIC_KEYS else None
        return render(config[key]) if key in config else None


def _check_tls(config: BrokerConfig, changed: BrokerConfig) -> None:
    if any(listener.uses_tls for listener in changed.listeners):
        # Imported here: most brokers never need it.
        from barnabas.security.listener_tls import check_tls_change

        check_tls_change(config, changed)


def _refuse_open_secrets(settings: Mapping[str, str], config: BrokerConfig) -> None:
    """In a cluster, secrets are stored only if they can be encrypted."""
    if config["zookeeper.connect"] is None or config["password.encoder.secret"] is not None:
        return
    for key in settings:
        if is_secret(key):
            raise invalid_request(
                f"{key} is a secret: set password.encoder.secret to the same value on all brokers first"
            )


Results = list[KafkaError | None]
Content = TypeVar("Content")


def alter_configs(
    image: MetadataImage,
    alterations: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]],
    rules: ConfigRules,
) -> Decision[Results]:
    """Incremental changes: set, delete, append to a list, subtract from a list."""

    def changed(resource: ConfigResource, changes: Sequence[ConfigChange]) -> dict[str, str]:
        values = dict(image.config(*resource))
        for change in changes:
            if change.operation in (Operation.APPEND, Operation.SUBTRACT) and change.key not in values:
                inherited = rules.inherited(resource[0], change.key)
                if inherited is not None:
                    values[change.key] = inherited
        return alter_incremental(
            values,
            ((change.key, change.operation, change.value) for change in changes),
            _TABLES[resource[0]],
        )

    return _decide(image, alterations, changed, rules)


def replace_configs(
    image: MetadataImage,
    replacements: Sequence[tuple[ConfigResource, Mapping[str, str | None]]],
    rules: ConfigRules,
) -> Decision[Results]:
    """Replace all overrides of a resource: keys that are not given are removed."""

    def replaced(resource: ConfigResource, configs: Mapping[str, str | None]) -> dict[str, str]:
        values: dict[str, str] = {}
        for key, value in configs.items():
            if value is None:
                raise invalid_request(f"config {key} needs a value")
            values[key] = value
        return values

    return _decide(image, replacements, replaced, rules)


def _decide(
    image: MetadataImage,
    requests: Sequence[tuple[ConfigResource, Content]],
    new_values: Callable[[ConfigResource, Content], dict[str, str]],
    rules: ConfigRules,
) -> Decision[Results]:
    results: Results = []
    records: list[MetadataRecord] = []
    counts = Counter(resource for resource, _ in requests)
    for resource, content in requests:
        try:
            if counts[resource] > 1:
                raise invalid_request(f"resource {resource[1]!r} is in the request more than once")
            _check_resource(image, resource)
            values = new_values(resource, content)
            _check_values(resource, values, rules)
        except KafkaError as error:
            results.append(error.as_result())
            continue
        results.append(None)
        changes = _records(resource, image.config(*resource), values)
        records.extend(changes)
        if any(change.key == MIN_ISR for change in changes):
            records.extend(_cleared_elrs(image, resource))
    return Decision(tuple(records), results)


def _cleared_elrs(image: MetadataImage, resource: ConfigResource) -> Iterator[PartitionChangeRecord]:
    """Empty the eligible leader replicas of the topics whose min.insync.replicas changes (KIP-966).

    With a smaller number, records can be committed that these replicas do not have."""
    resource_type, name = resource
    topics = [image.topics[name]] if resource_type == TOPIC_RESOURCE else image.topics.values()
    for topic in topics:
        for index, partition in enumerate(topic.partitions):
            if partition.elr:
                yield PartitionChangeRecord(topic.id, index, elr=())


def _check_resource(image: MetadataImage, resource: ConfigResource) -> None:
    resource_type, name = resource
    if resource_type == TOPIC_RESOURCE:
        if name not in image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    elif resource_type == BROKER_RESOURCE:
        _check_broker_name(image, name)
    elif resource_type == GROUP_RESOURCE:
        # Configs may be set before the group exists.
        if not name:
            raise invalid_request("the group name is empty; configs can be set for one group only")
    elif resource_type in _REFUSED_RESOURCES:
        raise invalid_request(f"configs of {_REFUSED_RESOURCES[resource_type]} are not supported")
    else:
        raise invalid_request(f"resource type {resource_type} has no configs")


def _check_broker_name(image: MetadataImage, name: str) -> None:
    if name == "":
        return
    if not name.isascii() or not name.isdigit():
        raise invalid_request(f"{name!r} is not a broker id; use an empty name for all brokers")
    if str(int(name)) != name or int(name) not in image.brokers:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {name} is not registered")


def _check_values(resource: ConfigResource, values: Mapping[str, str], rules: ConfigRules) -> None:
    if resource[0] == TOPIC_RESOURCE:
        rules.check_topic(values)
    elif resource[0] == GROUP_RESOURCE:
        rules.check_group(values)
    else:
        rules.check_broker(resource[1], values)


def _records(resource: ConfigResource, old: Mapping[str, str], new: Mapping[str, str]) -> list[ConfigRecord]:
    changed = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    return [ConfigRecord(*resource, key, new.get(key)) for key in changed]
