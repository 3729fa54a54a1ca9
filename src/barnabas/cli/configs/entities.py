"""Finds the entity that the options of `barnabas configs` name, or explains what is wrong with them."""

import argparse
from typing import NamedTuple

from barnabas.cli.configs.arguments import DEFAULTS, NAMING
from barnabas.cli.failures import ToolError
from barnabas.client.admin import ConfigResource, ConfigResourceType
from barnabas.config.definition import Source
from barnabas.ids import topic_name_problem

DEFAULT_NAME = ""
# They have quotas and credentials (quotas.py).
QUOTA_TYPES = ("users", "clients", "ips")
_WITH_DEFAULTS = ("brokers", *QUOTA_TYPES)
_BY_NUMBER = ("brokers", "broker-loggers")

# Numbers of sources that only clients use; see barnabas.config.definition.Source for the others.
CLIENT_METRICS_SOURCE, GROUP_SOURCE = 7, 8


class Kind(NamedTuple):
    type: ConfigResourceType
    # Values from this source belong to the entity itself; None: all values do.
    own_source: int | None


KINDS = {
    "topics": Kind(ConfigResourceType.TOPIC, Source.TOPIC),
    "brokers": Kind(ConfigResourceType.BROKER, Source.DYNAMIC_BROKER),
    "broker-loggers": Kind(ConfigResourceType.BROKER_LOGGER, None),
    "client-metrics": Kind(ConfigResourceType.CLIENT_METRICS, CLIENT_METRICS_SOURCE),
    "groups": Kind(ConfigResourceType.GROUP, GROUP_SOURCE),
}
ENTITY_TYPES = ("topics", "clients", "users", "brokers", "ips", "client-metrics", "groups", "broker-loggers")


class Entity(NamedTuple):
    """`name` is None for all entities of the type, and empty for the defaults of the type."""

    type: str
    name: str | None

    @property
    def singular(self) -> str:
        return self.type[:-1]

    def resource(self) -> ConfigResource:
        return ConfigResource(KINDS[self.type].type, self.name or "")

    @property
    def own_source(self) -> int | None:
        if self.type == "brokers" and self.name == DEFAULT_NAME:
            return Source.DYNAMIC_DEFAULT_BROKER
        return KINDS[self.type].own_source


def entity_of(options: argparse.Namespace, action: str) -> Entity:
    types, names = types_and_names(options)
    if len(names) > 1:
        raise ToolError(
            "Only one name is allowed for an entity type: use --entity-name or --entity-default once."
        )
    entity = Entity(types[0], names[0] if names else None)
    _check_name(entity, action)
    return entity


def types_and_names(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The entity types and the names that the options give, both in the order of the command line."""
    short = {
        kind: getattr(options, name) for name, kind in NAMING.items() if getattr(options, name) is not None
    }
    short_defaults = [kind for name, kind in DEFAULTS.items() if getattr(options, name)]
    named = options.entity_names or []
    if (options.entity_type or named) and (short or short_defaults):
        raise ToolError(
            "--entity-{type,name,default} should not be used in conjunction with specific entity flags."
        )
    types = [*options.entity_type, *short, *short_defaults]
    _check_types(types)
    return types, [*named, *short.values(), *[DEFAULT_NAME] * len(short_defaults)]


def _check_types(types: list[str]) -> None:
    if not types:
        raise ToolError("At least one entity type must be specified, such as --topic NAME or --broker ID.")
    for kind in types:
        if kind not in ENTITY_TYPES:
            raise ToolError(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(ENTITY_TYPES)}."
            )
    if len(set(types)) != len(types):
        raise ToolError(f"Duplicate entity type(s) specified: {', '.join(types)}.")
    if len(types) > 1 and set(types) != {"users", "clients"}:
        raise ToolError("Only 'users' and 'clients' entity types may be specified together.")


def _check_name(entity: Entity, action: str) -> None:
    problem = topic_name_problem(entity.name) if entity.type == "topics" and entity.name else None
    if problem is not None:
        raise ToolError(f"{problem[0].upper()}{problem[1:]}.")
    if entity.name == DEFAULT_NAME and entity.type not in _WITH_DEFAULTS:
        raise ToolError(f"--entity-default must not be specified with --{action} of {entity.type}.")
    if entity.name is None and (action == "alter" or entity.type == "broker-loggers"):
        raise ToolError(f"An entity name must be specified with --{action} of {entity.type}.")
    if entity.name and entity.type in _BY_NUMBER and not entity.name.isdecimal():
        raise ToolError(
            f"The entity name for {entity.type} must be a valid integer broker id, but it is: {entity.name}."
        )
