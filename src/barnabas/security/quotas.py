"""Quotas of clients: what may be limited, which limit applies to whom, which change is valid. Pure values.

An entity is what a quota belongs to: a user, a client id, both, or an IP address. A part of an entity whose
name is None is the default: it applies to all that have no quota of their own."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"
CLIENT_KEYS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)

# Values of these keys are whole numbers up to the largest one; the others may have a fraction.
_WHOLE_MAX = {
    PRODUCER_BYTE_RATE: ("a LONG", 2.0**63),
    CONSUMER_BYTE_RATE: ("a LONG", 2.0**63),
    CONNECTION_CREATION_RATE: ("an INT", 2.0**31 - 1),
}
_FRACTION_MAX = 1e-6

# (type, name) of each part, in the order of the types; the form in which entities are compared and stored.
Entity: TypeAlias = tuple[tuple[str, str | None], ...]
QuotaValues: TypeAlias = Mapping[str, float]


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """The entity with these parts; a type that is given more than once counts as it was given last."""
    return tuple(sorted(dict(parts).items(), key=lambda part: part[0]))


def describe_entity(entity: Entity) -> str:
    """As Kafka's tools show an entity in an error."""
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def entity_problem(entity: Entity) -> str | None:
    """What is wrong with an entity, in the words of Kafka's errors; None if it may have quotas."""
    if not entity:
        return "Invalid empty client quota entity"
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
    names = dict(entity)
    if IP in names:
        if len(names) > 1:
            return "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
        if names[IP] is not None and not is_address(names[IP]):
            return f"{names[IP]} is not a valid IP address."
    return None


def is_address(text: str | None) -> bool:
    try:
        ipaddress.ip_address(text or "")
    except ValueError:
        return False
    return True


def keys_of(entity: Entity) -> tuple[str, ...]:
    """The keys that an entity can have."""
    return (CONNECTION_CREATION_RATE,) if entity and entity[0][0] == IP else CLIENT_KEYS


def value_problem(entity: Entity, key: str, value: float) -> str | None:
    """What is wrong with a new value; None if it is valid."""
    if key not in keys_of(entity):
        return f"Invalid configuration key {key}"
    # Written so that NaN is refused too.
    if not 0 < value < math.inf:
        return f"Quota {key} must be greater than 0"
    if key in _WHOLE_MAX:
        type_name, largest = _WHOLE_MAX[key]
        if value > largest:
            return f"Proposed value for {key} is too large for {type_name}."
        if value % 1.0 > _FRACTION_MAX:
            return f"{key} cannot be a fractional value."
    return None


class Limit(NamedTuple):
    """The limit of a client, and with whom it shares what it has used: those with the same user and client
    id here. An empty one means all of them."""

    bound: float
    user: str
    client_id: str


class ClientQuotas:
    """Finds the limit of a client: the most specific quota applies, in Kafka's order of eight levels."""

    def __init__(self, quotas: Mapping[Entity, QuotaValues]) -> None:
        # The values of each key by (user, client id). None is the default, and "" that there is no such part.
        self._by_key: dict[str, dict[tuple[str | None, str | None], float]] = {}
        self.addresses: dict[str, float] = {}
        self.address_default: float | None = None
        for entity, values in quotas.items():
            names = dict(entity)
            address = names.get(IP)
            for key, value in values.items():
                if IP not in names:
                    place = names.get(USER, ""), names.get(CLIENT_ID, "")
                    self._by_key.setdefault(key, {})[place] = value
                elif address is None:
                    self.address_default = value
                else:
                    self.addresses[str(ipaddress.ip_address(address))] = value

    @property
    def has_clients(self) -> bool:
        """Whether there is any quota of users or client ids."""
        return bool(self._by_key)

    def has(self, key: str) -> bool:
        return key in self._by_key

    def limit(self, key: str, user: str, client_id: str | None) -> Limit | None:
        """The limit that applies; None if there is none. Who has no client id has no quota by client id."""
        bounds = self._by_key.get(key)
        if bounds is None:
            return None
        client = client_id or ""
        for entity, shares in _levels(user, client):
            bound = bounds.get(entity)
            if bound is not None:
                return Limit(bound, *shares)
        return None

    def connection_rate(self, address: str) -> float | None:
        """New connections per second from this address; None if they are not limited."""
        return self.addresses.get(address, self.address_default)


def _levels(user: str, client: str) -> list[tuple[tuple[str | None, str | None], tuple[str, str]]]:
    """The entities that apply, the most specific first, each with who shares the limit."""
    of_user = [((user, ""), (user, ""))]
    of_all_users: list[tuple[tuple[str | None, str | None], tuple[str, str]]] = [((None, ""), (user, ""))]
    if not client:
        return [*of_user, *of_all_users]
    both = (user, client)
    return [
        ((user, client), both),
        ((user, None), both),
        *of_user,
        ((None, client), both),
        ((None, None), both),
        *of_all_users,
        (("", client), ("", client)),
        (("", None), ("", client)),
    ]


# ---- filters of DescribeClientQuotas

EXACT, DEFAULT, SPECIFIED = 0, 1, 2


class FilterPart(NamedTuple):
    """Matches an entity with a part of this type: with this name, the default, or any of the two."""

    type: str
    match_type: int
    name: str | None = None

    def matches(self, names: Mapping[str, str | None]) -> bool:
        if self.type not in names:
            return False
        return self.match_type == SPECIFIED or names[self.type] == self.name


def matches(entity: Entity, parts: Iterable[FilterPart], *, strict: bool) -> bool:
    """Whether all parts of the filter match; if strict, the entity must have no other parts."""
    names = dict(entity)
    wanted = tuple(parts)
    if strict and len(names) != len(wanted):
        return False
    return all(part.matches(names) for part in wanted)
