"""A broker's configuration: the text of server.properties, checked, typed and resolved. No I/O."""

from collections.abc import Iterator, Mapping
from typing import Any

from barnabas.config.broker import BROKER_KEYS, OF_ONE_LISTENER, PREFIXES, base_name
from barnabas.config.definition import ConfigError, ConfigKey, Source
from barnabas.config.listeners import Listener, parse_listeners, parse_protocol_map
from barnabas.config.parsing import parse, render
from barnabas.config.topic import TopicConfig, topic_defaults, with_overrides

__all__ = ["BrokerConfig", "ListenerConfig", "parse"]

_MEGABYTE = 1024 * 1024


class BrokerConfig(Mapping[str, Any]):
    """Every broker key with its typed value; `config["log.dirs"]` is a tuple of paths.

    Values come from, in this order: this broker's dynamic settings, the cluster's dynamic defaults,
    the properties given at start, the table."""

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        cluster_dynamic: Mapping[str, str] | None = None,
        broker_dynamic: Mapping[str, str] | None = None,
    ) -> None:
        self.properties = _with_both_ids(properties or {})
        self.cluster_dynamic = dict(cluster_dynamic or {})
        self.broker_dynamic = dict(broker_dynamic or {})
        self._layers = (
            (Source.DYNAMIC_BROKER, self.broker_dynamic),
            (Source.DYNAMIC_DEFAULT_BROKER, self.cluster_dynamic),
            (Source.STATIC_BROKER, self.properties),
        )
        self._values = {name: key.default for name, key in BROKER_KEYS.items()}
        # listener.name.<listener>.<key>, under the whole name.
        self._listener_values: dict[str, Any] = {}
        for _, layer in reversed(self._layers):
            for name, text in layer.items():
                self._put(name, text)
        self._resolve()

    def _put(self, name: str, text: str) -> None:
        if "${" in text:
            raise ConfigError(f"{name} refers to a config provider with ${{...}}: write the value itself.")
        key = BROKER_KEYS.get(name)
        if key is not None:
            self._values[name] = parse(key, text)
        elif base_name(name) in BROKER_KEYS:
            self._listener_values[name] = parse(BROKER_KEYS[base_name(name)], text)

    def _resolve(self) -> None:
        self.topic_defaults: TopicConfig = topic_defaults(self._values)
        self.log_dirs: tuple[str, ...] = self["log.dirs"] or self["log.dir"]
        self.node_id: int = self["node.id"]
        _check_limits(self)
        self._protocols = _listener_protocols(self)
        self.listeners = self._broker_listeners()
        self.advertised_listeners = self._advertised_listeners()
        self.inter_broker_listener = self._inter_broker_listener()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def source(self, name: str) -> Source:
        """Where the value of a key comes from."""
        return next((source for source, layer in self._layers if name in layer), Source.DEFAULT)

    def for_listener(self, listener: Listener) -> "ListenerConfig":
        """The settings as they are for one listener."""
        return ListenerConfig(self, self._listener_values, listener.config_prefix)

    def with_overrides(self, properties: Mapping[str, str]) -> "BrokerConfig":
        """The same configuration with some properties of the file replaced."""
        return self._copy({**self.properties, **properties}, self.cluster_dynamic, self.broker_dynamic)

    def with_dynamic(self, cluster: Mapping[str, str], broker: Mapping[str, str]) -> "BrokerConfig":
        """The same file under other dynamic settings."""
        return self._copy(self.properties, cluster, broker)

    def _copy(
        self, properties: Mapping[str, str], cluster: Mapping[str, str], broker: Mapping[str, str]
    ) -> "BrokerConfig":
        return BrokerConfig(properties, cluster_dynamic=cluster, broker_dynamic=broker)

    def check_change(self, new: "BrokerConfig") -> None:
        """ConfigError if a broker that runs with these settings cannot change to the new ones."""
        old_listeners = {listener.name: listener for listener in self.listeners}
        for listener in new.listeners:
            if listener != old_listeners.get(listener.name, listener):
                raise ConfigError(
                    f"The listener {listener.name} cannot be changed while the broker runs: "
                    "add one with another name, or change it in the file and restart."
                )
        if new.advertised_listeners != self.advertised_listeners:
            raise ConfigError(
                "The addresses given to clients cannot be changed while the broker runs: "
                "set advertised.listeners in the file to keep them apart from listeners, and restart."
            )

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The settings of a topic with these overrides on this broker."""
        return with_overrides(self.topic_defaults, overrides)

    @property
    def unknown(self) -> list[str]:
        """Properties that are not in the table, in the order they were given."""
        return [name for name in self.properties if not is_broker_key(name)]

    @property
    def without_effect(self) -> list[str]:
        """Properties that were given and that this release does not act on."""
        keys = ((name, BROKER_KEYS.get(base_name(name))) for name in self.properties)
        return [name for name, key in keys if key is not None and not _has_effect(name, key)]

    def unknown_sentences(self) -> list[str]:
        """One sentence for each unknown property, with the key that was probably meant."""
        return [_about_unknown(name) for name in self.unknown]

    def _broker_listeners(self) -> tuple[Listener, ...]:
        listeners = parse_listeners("listeners", self["listeners"], self._protocols)
        controllers = {name.upper() for name in self["controller.listener.names"]}
        for_clients = tuple(listener for listener in listeners if listener.name not in controllers)
        if not for_clients:
            raise ConfigError("All listeners are in controller.listener.names: add one for clients.")
        return for_clients

    def _advertised_listeners(self) -> tuple[Listener, ...]:
        if self["advertised.listeners"] is None:
            return _advertise(self.listeners, is_default=self.source("listeners") is Source.DEFAULT)
        names = {listener.name for listener in self.listeners}
        controllers = {name.upper() for name in self["controller.listener.names"]}
        given = parse_listeners(
            "advertised.listeners", self["advertised.listeners"], self._protocols, distinct_ports=False
        )
        advertised = tuple(listener for listener in given if listener.name not in controllers)
        for listener in advertised:
            if listener.name not in names:
                raise ConfigError(
                    f"advertised.listeners has {listener}, but listeners has none named {listener.name}."
                )
        return _advertise(advertised, is_default=False)

    def _inter_broker_listener(self) -> Listener:
        name = self["inter.broker.listener.name"]
        if name is not None and self.source("security.inter.broker.protocol") is not Source.DEFAULT:
            raise ConfigError(
                "Both inter.broker.listener.name and security.inter.broker.protocol are set: set one of them."
            )
        key = "inter.broker.listener.name" if name is not None else "security.inter.broker.protocol"
        required = (name or self["security.inter.broker.protocol"]).upper()
        for listener in self.advertised_listeners:
            if listener.name == required:
                return listener
        names = ", ".join(listener.name for listener in self.advertised_listeners)
        raise ConfigError(f"{key} names the listener {required}, but the advertised listeners are {names}.")


def _has_effect(name: str, key: ConfigKey) -> bool:
    """Only some settings of a single listener (listener.name.<name>.<key>) have an effect."""
    return key.honoured if name in BROKER_KEYS else key.name in OF_ONE_LISTENER


class ListenerConfig(Mapping[str, Any]):
    """The settings of one listener: `listener.name.<listener>.<key>` if it is set, else `<key>`. A key of a
    SASL mechanism is `<mechanism>.<key>`; it has no value outside of a listener."""

    def __init__(self, config: BrokerConfig, listener_values: Mapping[str, Any], prefix: str) -> None:
        self._config = config
        self._listener_values = listener_values
        self._prefix = prefix

    def __getitem__(self, name: str) -> Any:
        own = self._prefix + name
        return self._listener_values[own] if own in self._listener_values else self._config[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._config
        for name in self._listener_values:
            if name.startswith(self._prefix) and name.removeprefix(self._prefix) not in self._config:
                yield name.removeprefix(self._prefix)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def is_own(self, name: str) -> bool:
        """Whether the key is set for this listener itself."""
        return self._prefix + name in self._listener_values

    def text(self, name: str) -> str | None:
        """The value as text, as in a properties file; None if there is none."""
        return render(self[name])


def _with_both_ids(properties: Mapping[str, str]) -> dict[str, str]:
    """node.id and broker.id mean the same: the one that is given counts for both."""
    both = dict(properties)
    if both.get("broker.id", "").strip() == "-1":
        del both["broker.id"]
    node, broker = both.get("node.id"), both.get("broker.id")
    if node is not None and broker is not None and node.strip() != broker.strip():
        raise ConfigError(f"node.id is {node!r} and broker.id is {broker!r}: they must be the same number.")
    given = node if node is not None else broker
    if given is not None:
        both["node.id"] = both["broker.id"] = given
    return both


def _listener_protocols(config: BrokerConfig) -> dict[str, str]:
    protocols = parse_protocol_map(config["listener.security.protocol.map"])
    if config.source("listener.security.protocol.map") is Source.DEFAULT:
        # A KRaft file often names its controller listener and has no map.
        for name in config["controller.listener.names"]:
            protocols.setdefault(name.upper(), "PLAINTEXT")
    return protocols


def _advertise(listeners: tuple[Listener, ...], *, is_default: bool) -> tuple[Listener, ...]:
    for listener in listeners:
        if listener.host == "0.0.0.0":
            raise ConfigError(
                f"Clients cannot reach {listener}: set advertised.listeners to an address they can reach."
            )
    if is_default:
        # A client that resolves localhost to ::1 first would miss a broker that listens on IPv4.
        return tuple(listener._replace(host="127.0.0.1") for listener in listeners)
    return listeners


def _check_limits(config: BrokerConfig) -> None:
    """Rules that tie several keys together."""
    defaults = config.topic_defaults
    roles = config["process.roles"]
    cleaners = max(1, config["log.cleaner.threads"])
    rules = (
        (
            not roles or "broker" in roles,
            "process.roles must contain broker: there are no other processes",
        ),
        (defaults.segment_ms >= 1, "log.roll.ms must be at least 1"),
        (defaults.segment_jitter_ms >= 0, "log.roll.jitter.ms must be at least 0"),
        (
            defaults.retention_ms == -1 or defaults.retention_ms >= 1,
            "log.retention.ms must be -1 or at least 1",
        ),
        (
            defaults.min_compaction_lag_ms <= defaults.max_compaction_lag_ms,
            "log.cleaner.min.compaction.lag.ms must not exceed log.cleaner.max.compaction.lag.ms",
        ),
        (
            config["log.cleaner.dedupe.buffer.size"] // cleaners > _MEGABYTE,
            "log.cleaner.dedupe.buffer.size must be more than 1 MB for each of log.cleaner.threads",
        ),
        (
            config["replica.fetch.wait.max.ms"] <= config["replica.socket.timeout.ms"],
            "replica.fetch.wait.max.ms must not exceed replica.socket.timeout.ms",
        ),
        (
            config["replica.fetch.wait.max.ms"] <= config["replica.lag.time.max.ms"],
            "replica.fetch.wait.max.ms must not exceed replica.lag.time.max.ms",
        ),
        (
            not config["remote.log.storage.system.enable"],
            "remote.log.storage.system.enable must be false: this release has no tiered storage",
        ),
    )
    for holds, sentence in rules:
        if not holds:
            raise ConfigError(sentence + ".")


def is_broker_key(name: str) -> bool:
    return name in BROKER_KEYS or name.startswith(PREFIXES)


def _about_unknown(name: str) -> str:
    # Imported here because only a faulty file needs it, and a start should not pay for it.
    from difflib import get_close_matches

    near = get_close_matches(name, BROKER_KEYS, n=1, cutoff=0.8)
    hint = f"; did you mean {near[0]}?" if near else "."
    return f"{name} is not a broker setting{hint}"
