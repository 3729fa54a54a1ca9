"""Changes of configuration, apart from the wire: the result of a change, and whether it is allowed. Pure."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

from barnabas.config.broker import BROKER_KEYS, base_name
from barnabas.config.definition import PER_BROKER, READ_ONLY, ConfigError, ConfigKey, Type
from barnabas.config.parsing import parse, render
from barnabas.config.topic import TopicConfig, topic_config
from barnabas.errors import ErrorCode

# A listener's key store and trust store change only under that listener's own name.
_PER_LISTENER_ONLY = frozenset(
    (
        "ssl.key.password",
        *(f"ssl.keystore.{part}" for part in ("type", "location", "password", "key", "certificate.chain")),
        *(f"ssl.truststore.{part}" for part in ("type", "location", "password", "certificates")),
    )
)
_CLUSTER_LISTENER_KEYS = ("max.connections", "max.connection.creation.rate", "num.network.threads")


class Operation(IntEnum):
    """What to do with a value, numbered as in IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def alter_incremental(
    current: Mapping[str, str],
    changes: Iterable[tuple[str, int, str | None]],
    table: Mapping[str, ConfigKey],
) -> dict[str, str]:
    """`current` with the changes; the caller must still validate the result as a whole."""
    result = dict(current)
    seen: set[str] = set()
    for name, number, value in changes:
        if name in seen:
            raise _malformed(f"{name} is changed twice in one request: name each setting once.")
        seen.add(name)
        operation = _operation(number)
        if operation is Operation.DELETE:
            result.pop(name, None)
        elif value is None:
            raise _malformed(f"{name} has no value: only a deletion needs none.")
        elif operation is Operation.SET:
            result[name] = value
        else:
            result[name] = _change_list(operation, result.get(name), value, _list_key(name, operation, table))
    return result


def _operation(number: int) -> Operation:
    try:
        return Operation(number)
    except ValueError:
        raise _malformed(
            f"{number} is not an operation: use 0 (set), 1 (delete), 2 (append) or 3 (subtract)."
        ) from None


def _list_key(name: str, operation: Operation, table: Mapping[str, ConfigKey]) -> ConfigKey:
    key = table.get(name)
    if key is None:
        raise ConfigError(f"{name} is not a known setting.")
    if key.type is not Type.LIST:
        raise ConfigError(f"{name} is not a list: use set instead of {operation.name.lower()}.")
    return key


def _change_list(operation: Operation, current: str | None, value: str, key: ConfigKey) -> str:
    items = _items(render(key.default) if current is None else current)
    if operation is Operation.APPEND:
        items = list(dict.fromkeys(items + _items(value)))
    else:
        taken = _items(value)
        items = [item for item in items if item not in taken]
    return ",".join(items)


def _items(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").split(",") if item.strip()]


def validate_topic_overrides(
    overrides: Mapping[str, str | None], broker_values: Mapping[str, Any] | None = None
) -> TopicConfig:
    """The settings a topic would have with these overrides; ConfigError if it may not have them."""
    given: dict[str, str] = {}
    for name, text in overrides.items():
        if text is None:
            raise ConfigError(f"{name} has no value: leave it out to get the default.")
        given[name] = text
    config = topic_config(broker_values or {}, given)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError(
            f"min.compaction.lag.ms ({config.min_compaction_lag_ms}) must not exceed "
            f"max.compaction.lag.ms ({config.max_compaction_lag_ms})."
        )
    if given.get("remote.storage.enable", "").strip().lower() == "true":
        raise ConfigError("remote.storage.enable must be false: this broker has no tiered storage.")
    return config


def validate_broker_dynamic(settings: Mapping[str, str], *, per_broker: bool) -> None:
    """Check dynamic settings of one broker, or of all brokers when not `per_broker`.

    A setting that no table knows is allowed, as in Kafka. Kafka answers INVALID_REQUEST here."""
    for name, text in settings.items():
        base = base_name(name)
        key = BROKER_KEYS.get(base)
        if key is None:
            continue
        _check_may_change(name, base, key, per_broker=per_broker)
        try:
            parse(key, text)
        except ConfigError as error:
            raise _malformed(error.message) from None


def _check_may_change(name: str, base: str, key: ConfigKey, *, per_broker: bool) -> None:
    if key.mode == READ_ONLY:
        raise _malformed(f"{name} is only read when a broker starts: change it in the file and restart.")
    if name in _PER_LISTENER_ONLY:
        raise _malformed(f"{name} can be changed only for one listener: set listener.name.<listener>.{name}.")
    of_one_listener = name != base and base not in _CLUSTER_LISTENER_KEYS
    if not per_broker and (key.mode == PER_BROKER or of_one_listener):
        raise _malformed(f"{name} can be changed only for one broker: name the broker in the request.")


def _malformed(sentence: str) -> ConfigError:
    return ConfigError(sentence, ErrorCode.INVALID_REQUEST)
