"""Quotas of users, clients and ips: prints and changes them, as kafka-configs.sh does."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.cli.configs.altering import operations_of
from barnabas.cli.failures import ToolError
from barnabas.cli.output import print_json
from barnabas.client.admin import Admin, AdminError, ConfigOperation
from barnabas.security.quotas import (
    CLIENT_ID,
    CLIENT_KEYS,
    CONNECTION_CREATION_RATE,
    DEFAULT,
    EXACT,
    IP,
    SPECIFIED,
    USER,
    Entity,
    FilterPart,
    entity_of,
    is_address,
)

# The entity types of the command line, and those of quotas.
_KINDS = {"users": USER, "clients": CLIENT_ID, "ips": IP}
_TITLES = {USER: "user-principal", CLIENT_ID: "client-id", IP: "ip"}


class Named(NamedTuple):
    """The entity types of the command line, and the names that belong to the first of them; an empty name is
    the default."""

    types: Sequence[str]
    names: Sequence[str]

    def filter(self) -> list[FilterPart]:
        """A type without a name stands for all of its entities."""
        parts = []
        for position, kind in enumerate(self.types):
            if position >= len(self.names):
                parts.append(FilterPart(_KINDS[kind], SPECIFIED))
            elif self.names[position]:
                parts.append(FilterPart(_KINDS[kind], EXACT, self.names[position]))
            else:
                parts.append(FilterPart(_KINDS[kind], DEFAULT))
        return parts

    def entity(self) -> Entity:
        if len(self.types) != len(self.names):
            raise ToolError("Exactly one entity name must be specified for every entity type.")
        return entity_of(
            (_KINDS[kind], name or None) for kind, name in zip(self.types, self.names, strict=True)
        )


def check_named(named: Named, action: str) -> None:
    if len(named.names) > len(named.types):
        raise ToolError("More entity names specified than entity types.")
    if action == "alter" and not named.names:
        raise ToolError(
            "An entity-name or default entity must be specified with --alter of users, clients, brokers "
            "or ips."
        )
    if named.types[0] == "ips" and any(name and not is_address(name) for name in named.names):
        raise ToolError(f"The entity name for ips must be a valid IP address, but it is: {named.names[0]}.")


def describe_quotas(
    admin: Admin,
    named: Named,
    options: argparse.Namespace,
    credentials: Iterable[tuple[str, Mapping[str, int]]] = (),
) -> int:
    """`credentials` are the SCRAM credentials of users (credentials.py), printed after the quotas."""
    if options.add_config is not None or options.add_config_file is not None or options.delete_config:
        raise ToolError("--add-config, --add-config-file and --delete-config can only be used with --alter.")
    quotas = admin.describe_client_quotas(named.filter(), strict=True)
    if options.json:
        print_json(
            [
                *({"entity": dict(entity), "quotas": dict(values)} for entity, values in quotas.items()),
                *({"entity": {"user": user}, "credentials": dict(each)} for user, each in credentials),
            ]
        )
        return 0
    for entity, values in quotas.items():
        texts = ", ".join(f"{key}={java_double(value)}" for key, value in sorted(values.items()))
        print(f"Quota configs for {_title(entity)} are {texts}")
    for user, each in credentials:
        texts = ", ".join(f"{mechanism}=iterations={iterations}" for mechanism, iterations in each.items())
        print(f"SCRAM credential configs for user-principal '{user}' are {texts}")
    return 0


def _title(entity: Entity) -> str:
    names = dict(entity)
    return ", ".join(
        f"the default {title}" if names[kind] is None else f"{title} '{names[kind]}'"
        for kind, title in _TITLES.items()
        if kind in names
    )


def alter_quotas(admin: Admin, named: Named, options: argparse.Namespace) -> int:
    if options.all or options.json:
        raise ToolError("--all and --json can only be used with --describe.")
    entity = named.entity()
    operations = operations_of(options)
    added = {op.name: op.value or "" for op in operations if op.operation != ConfigOperation.DELETE}
    deleted = [op.name for op in operations if op.operation == ConfigOperation.DELETE]
    _check_keys(named, added, deleted)
    current = admin.describe_client_quotas(named.filter(), strict=True).get(entity, {})
    missing = [key for key in deleted if key not in current]
    if missing:
        raise ToolError(f"Invalid config(s): {','.join(missing)}.")
    changes: dict[str, float | None] = {key: _number(key, value) for key, value in added.items()}
    changes |= dict.fromkeys(deleted)
    try:
        admin.alter_client_quotas({entity: changes})
    except AdminError as error:
        # There is one entity, so its error says everything.
        (failure,) = error.errors.values()
        raise ToolError(failure.message) from error
    kind, name = named.types[0], named.names[0]
    if name:
        print(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")
    return 0


def _check_keys(named: Named, added: Iterable[str], deleted: Iterable[str]) -> None:
    if named.types[0] == "ips":
        unknown = [key for key in (*added, *deleted) if key != CONNECTION_CREATION_RATE]
        if unknown:
            raise ToolError(
                "Only connection quota configs can be added for 'ips' using --bootstrap-server. "
                f"Unexpected config names: {','.join(unknown)}."
            )
        return
    kind = "clients" if "clients" in named.types else "users"
    for keys, verb in ((added, "added"), (deleted, "deleted")):
        unknown = [key for key in keys if key not in CLIENT_KEYS]
        if unknown:
            which = "quota" if kind == "clients" else "quota and SCRAM credential"
            raise ToolError(
                f"Only {which} configs can be {verb} for '{kind}' using --bootstrap-server. "
                f"Unexpected config names: {', '.join(unknown)}."
            )


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ToolError(f"Cannot parse quota configuration value for {key}: {text}.") from None


def java_double(value: float) -> str:
    """A number as Kafka's tools print it: from 10 million on with an exponent, as 1.048576E7."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    # The shortest form that is this number, with at least one digit after the point.
    text = next(text for text in (f"{value:.{digits}e}" for digits in range(1, 18)) if float(text) == value)
    digits, _, exponent = text.partition("e")
    return f"{digits}E{int(exponent)}"
