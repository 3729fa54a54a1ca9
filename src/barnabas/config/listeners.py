"""Listeners: `name://host:port` items, each with the security protocol that belongs to its name.

Pure functions on text; nothing here opens or resolves anything."""

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.config.definition import ConfigError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_ENDPOINT = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")


class Listener(NamedTuple):
    """An address to listen on or to give to clients; an empty host means every interface."""

    name: str
    host: str
    port: int
    protocol: str

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def config_prefix(self) -> str:
        """What the keys that count for this listener only begin with."""
        return f"listener.name.{self.name.lower()}."

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(text: str) -> dict[str, str]:
    """`NAME:PROTOCOL` items; names are in capitals, as everywhere."""
    protocols: dict[str, str] = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        name, separator, protocol = (part.strip() for part in item.rpartition(":"))
        if not separator or not name or protocol.upper() not in PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map has {item!r}: "
                f"an item must be NAME:PROTOCOL with a protocol of {', '.join(PROTOCOLS)}."
            )
        protocols[name.upper()] = protocol.upper()
    return protocols


def parse_host_limits(text: str) -> dict[str, int]:
    """`host:count` items, as max.connections.per.ip.overrides has them."""
    limits: dict[str, int] = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        host, _, limit = item.rpartition(":")
        if not host or not limit.isdecimal():
            raise ConfigError(f"{item!r} is not host:count.")
        limits[host] = int(limit)
    return limits


def are_host_limits(text: str) -> bool:
    try:
        parse_host_limits(text)
    except ConfigError:
        return False
    return True


def parse_listeners(
    key: str, items: Iterable[str], protocols: Mapping[str, str], *, distinct_ports: bool = True
) -> tuple[Listener, ...]:
    """The listeners that `key` names; ConfigError if one is malformed or two collide."""
    listeners = tuple(_parse_listener(key, item, protocols) for item in items)
    names = [listener.name for listener in listeners]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{key} has two listeners named {name}: use each name once.")
    if distinct_ports:
        _check_ports(key, listeners)
    return listeners


def _parse_listener(key: str, item: str, protocols: Mapping[str, str]) -> Listener:
    match = _ENDPOINT.fullmatch(item.strip())
    if match is None or not match[1]:
        raise ConfigError(f"{key} has {item!r}: a listener must be written name://host:port.")
    name, host, port = match[1].upper(), match[2], int(match[3])
    if not 0 <= port <= 65535:
        raise ConfigError(f"{key} has {item!r}: a port must be from 0 to 65535.")
    if name not in protocols:
        raise ConfigError(
            f"{key} has a listener named {name}, but listener.security.protocol.map gives it no protocol."
        )
    return Listener(name, host, port, protocols[name])


def _check_ports(key: str, listeners: Sequence[Listener]) -> None:
    """Two listeners share a port only as one IPv4 and one IPv6 address; port 0 is a new port each time."""
    by_port: dict[int, list[str]] = {}
    for listener in listeners:
        if listener.port != 0:
            by_port.setdefault(listener.port, []).append(listener.host)
    for port, hosts in by_port.items():
        if len(hosts) > 1 and sorted(map(_address_version, hosts)) != [4, 6]:
            raise ConfigError(
                f"{key} uses port {port} more than once: only one IPv4 and one IPv6 address may share a port."
            )


def _address_version(host: str) -> int:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0
