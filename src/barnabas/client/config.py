"""Settings of a client: Kafka's keys, as keyword arguments with underscores or as a dict with dots.

config = admin_config({"bootstrap.servers": "localhost:9092"}, request_timeout_ms=5000)
config["request.timeout.ms"]       # 5000
config.seconds("retry.backoff.ms") # 0.1
"""

import itertools
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from barnabas.client.habits import setting_hint
from barnabas.client.keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS
from barnabas.config.definition import ConfigError, ConfigKey, Type
from barnabas.config.parsing import parse, wrong_value
from barnabas.net.broker_connection import ConnectionSettings

if TYPE_CHECKING:
    from barnabas.security.client_security import ClientSecurity

__all__ = ["ClientConfig", "admin_config", "consumer_config", "parse_servers", "producer_config"]

# Clients without a client.id are numbered within the process, as in the Java client.
_NUMBERS_OF_CLIENTS = itertools.count(1)
_NUMBERS = (Type.INT, Type.LONG, Type.SHORT)


class ClientConfig:
    """Typed values by key; `is_set` is false for values that are defaults."""

    def __init__(
        self,
        keys: Mapping[str, ConfigKey],
        settings: Mapping[str, Any] | None = None,
        keywords: Mapping[str, Any] | None = None,
    ) -> None:
        given: dict[str, Any] = {}
        for name, value in (settings or {}).items():
            _put(given, _known(keys, name, name), value)
        for name, value in (keywords or {}).items():
            _put(given, _known(keys, name.replace("_", "."), name), value)
        self._given = frozenset(given)
        self._values = {name: key.default for name, key in keys.items()}
        for name, value in given.items():
            self._values[name] = _typed(keys[name], value)
        self.servers = parse_servers(self._values["bootstrap.servers"])
        # Made now, so that the one who creates the client gets the error for a wrong setting or file.
        self.security = self._security()

    def __repr__(self) -> str:
        # Values may be secrets.
        return f"<settings of a client: {', '.join(sorted(self._given))}>"

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def is_set(self, name: str) -> bool:
        return name in self._given

    def name_client(self, name: str) -> None:
        """Set client.id if the user did not set it. Brokers use it in their logs."""
        if not self._values["client.id"]:
            self._values["client.id"] = name

    def seconds(self, name: str) -> float:
        """The value of a key in milliseconds, in seconds."""
        milliseconds: int = self._values[name]
        return milliseconds / 1000

    def _security(self) -> "ClientSecurity | None":
        if self["security.protocol"].upper() == "PLAINTEXT" and not self.is_set("sasl.mechanism"):
            return None
        # Imported late: TLS and SASL cost time that clients without them need not spend.
        from barnabas.security.client_security import client_security

        return client_security(self._values.get)

    @property
    def connection_settings(self) -> ConnectionSettings:
        return ConnectionSettings(
            client_id=self["client.id"] or None,
            request_seconds=self.seconds("request.timeout.ms"),
            idle_seconds=self.seconds("connections.max.idle.ms"),
            connect_seconds=self.seconds("socket.connection.setup.timeout.ms"),
            connect_seconds_max=self.seconds("socket.connection.setup.timeout.max.ms"),
            reconnect_pause_seconds=self.seconds("reconnect.backoff.ms"),
            reconnect_pause_seconds_max=self.seconds("reconnect.backoff.max.ms"),
            send_buffer_bytes=self["send.buffer.bytes"],
            receive_buffer_bytes=self["receive.buffer.bytes"],
            security=self.security,
        )


def admin_config(settings: Mapping[str, Any] | None = None, **keywords: Any) -> ClientConfig:
    config = ClientConfig(ADMIN_KEYS, settings, keywords)
    config.name_client(f"adminclient-{next(_NUMBERS_OF_CLIENTS)}")
    return config


def producer_config(settings: Mapping[str, Any] | None = None, **keywords: Any) -> ClientConfig:
    config = ClientConfig(PRODUCER_KEYS, settings, keywords)
    config.name_client(f"producer-{config['transactional.id'] or next(_NUMBERS_OF_CLIENTS)}")
    return config


def consumer_config(settings: Mapping[str, Any] | None = None, **keywords: Any) -> ClientConfig:
    config = ClientConfig(CONSUMER_KEYS, settings, keywords)
    parts = ("consumer", config["group.id"], str(next(_NUMBERS_OF_CLIENTS)))
    config.name_client("-".join(part for part in parts if part))
    return config


def parse_servers(servers: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """The host:port items of bootstrap.servers as pairs. An IPv6 address must be in brackets."""
    if not servers:
        raise ConfigError("bootstrap.servers must name at least one broker as host:port.")
    return tuple(_parse_server(server) for server in servers)


def _parse_server(server: str) -> tuple[str, int]:
    # Some users write a protocol before the address; ignore it.
    address = server.rpartition("://")[2]
    host, _, port = address.rpartition(":")
    is_bare_ipv6 = ":" in host and not (host.startswith("[") and host.endswith("]"))
    if not host or is_bare_ipv6 or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(
            f"bootstrap.servers has {server!r}: each item must be host:port, such as localhost:9092."
        )
    return host.strip("[]"), int(port)


def _known(keys: Mapping[str, ConfigKey], name: str, written: str) -> str:
    if name in keys:
        return name
    if hint := setting_hint(written):
        raise ConfigError(f"{written} is not a setting of this client: {hint}.")
    near = get_close_matches(name, keys, n=1, cutoff=0.6)
    if not near:
        raise ConfigError(f"{written} is not a setting of this client.")
    # Suggest the key in the user's spelling: with dots in a dict, with underscores in a call.
    suggestion = near[0] if written == name else near[0].replace(".", "_")
    raise ConfigError(f"{written} is not a setting of this client; did you mean {suggestion}?")


def _put(given: dict[str, Any], name: str, value: Any) -> None:
    if name in given:
        raise ConfigError(f"{name} is given twice.")
    given[name] = value


def _typed(key: ConfigKey, value: Any) -> Any:
    if value is None:
        if key.default is not None:
            raise wrong_value(key, "None", f"of type {key.type.name.lower()}")
        return None
    if isinstance(value, str):
        return parse(key, value)
    if key.type is Type.LIST:
        value = _items(key, value)
    elif not _fits(key, value):
        raise wrong_value(key, str(value), f"of type {key.type.name.lower()}")
    return value if key.type in (Type.CLASS, Type.LIST) else parse(key, str(value))


def _items(key: ConfigKey, value: Any) -> tuple[Any, ...]:
    """A list may contain objects, such as interceptors. A single object means a list of one."""
    items = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
    if key.check is not None and not key.check.test(items):
        raise wrong_value(key, str(items), key.check.allowed)
    return items


def _fits(key: ConfigKey, value: Any) -> bool:
    if key.type is Type.CLASS:
        return True
    if key.type is Type.BOOLEAN:
        return isinstance(value, bool)
    if key.type in _NUMBERS:
        return isinstance(value, int) and not isinstance(value, bool)
    if key.type is Type.DOUBLE:
        return isinstance(value, int | float) and not isinstance(value, bool)
    # Some string settings accept numbers: acks=1.
    return isinstance(value, int) and not isinstance(value, bool)
