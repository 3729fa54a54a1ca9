"""Prints settings, each with its synonyms: the values that are used if it is deleted."""

import argparse
from typing import Any

from barnabas.cli.configs.entities import CLIENT_METRICS_SOURCE, DEFAULT_NAME, GROUP_SOURCE, KINDS, Entity
from barnabas.cli.failures import ToolError, print_errors, results_and_errors
from barnabas.cli.output import print_json
from barnabas.client.admin import Admin, ConfigEntry
from barnabas.client.errors import UnsupportedVersionError
from barnabas.config.definition import Source

# Names of sources as Kafka's tools print them.
SOURCES = {
    Source.TOPIC: "DYNAMIC_TOPIC_CONFIG",
    Source.DYNAMIC_BROKER: "DYNAMIC_BROKER_CONFIG",
    Source.DYNAMIC_DEFAULT_BROKER: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    Source.STATIC_BROKER: "STATIC_BROKER_CONFIG",
    Source.DEFAULT: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    CLIENT_METRICS_SOURCE: "DYNAMIC_CLIENT_METRICS_CONFIG",
    GROUP_SOURCE: "DYNAMIC_GROUP_CONFIG",
}


def describe(admin: Admin, entity: Entity, options: argparse.Namespace) -> int:
    if options.add_config is not None or options.add_config_file is not None or options.delete_config:
        raise ToolError("--add-config, --add-config-file and --delete-config can only be used with --alter.")
    known = _known(admin, entity.type) if entity.name is None or not options.all else None
    if entity.name is None:
        entities = [Entity(entity.type, name) for name in known or ()]
    elif known is not None and entity.name not in known:
        print_missing(entity, options.json)
        return 0
    else:
        entities = [entity]
    resources = [each.resource() for each in entities]
    described, errors = results_and_errors(lambda: admin.describe_configs(resources))
    shown = [
        (each, chosen_entries(each, described[each.resource()], options.all))
        for each in entities
        if each.resource() in described
    ]
    if options.json:
        print_json([as_json(each, entries) for each, entries in shown])
    else:
        for each, entries in shown:
            print(header(each, options.all))
            for entry in entries:
                print(entry_line(entry))
    return print_errors(errors)


def _known(admin: Admin, entity_type: str) -> list[str]:
    """The names of all entities of a type, in the order in which they are printed."""
    match entity_type:
        case "topics":
            return sorted(admin.list_topics(include_internal=True))
        case "brokers" | "broker-loggers":
            return [*(str(node.id) for node in admin.describe_cluster().nodes), DEFAULT_NAME]
        case "groups":
            groups = {listing.group_id for listing in admin.list_consumer_groups()}
            return sorted(groups | set(_with_settings(admin, entity_type)))
        case _:
            return sorted(_with_settings(admin, entity_type))


def _with_settings(admin: Admin, entity_type: str) -> list[str]:
    kind = KINDS[entity_type].type
    try:
        return [resource.name for resource in admin.list_config_resources([kind]) if resource.type == kind]
    except UnsupportedVersionError:
        # An old broker does not have this list, and most of its entities have no settings.
        return []


def print_missing(entity: Entity, is_json: bool) -> None:
    if is_json:
        print_json([])
    else:
        print(f"The {entity.singular} '{entity.name}' doesn't exist and doesn't have dynamic config.")


def chosen_entries(entity: Entity, entries: dict[str, ConfigEntry], with_all: bool) -> list[ConfigEntry]:
    """The entity's own settings, or all of them, by name."""
    own = entity.own_source
    return [
        entries[name] for name in sorted(entries) if with_all or own is None or entries[name].source == own
    ]


def header(entity: Entity, with_all: bool) -> str:
    if entity.name == DEFAULT_NAME:
        return f"Default configs for {entity.type} in the cluster are:"
    return f"{'All' if with_all else 'Dynamic'} configs for {entity.singular} {entity.name} are:"


def entry_line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(
        f"{source_name(synonym.source)}:{synonym.name}={_java(synonym.value)}" for synonym in entry.synonyms
    )
    sensitive = "true" if entry.is_sensitive else "false"
    return f"  {entry.name}={_java(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def source_name(source: int) -> str:
    return SOURCES.get(source, "UNKNOWN")


def _java(value: str | None) -> str:
    return "null" if value is None else value


def as_json(entity: Entity, entries: list[ConfigEntry]) -> dict[str, Any]:
    return {
        "entityType": entity.type,
        "entityName": entity.name or None,
        "configs": [
            {
                "name": entry.name,
                "value": entry.value,
                "source": source_name(entry.source),
                "isSensitive": entry.is_sensitive,
                "isReadOnly": entry.is_read_only,
                "synonyms": [
                    {"name": each.name, "value": each.value, "source": source_name(each.source)}
                    for each in entry.synonyms
                ],
            }
            for entry in entries
        ],
    }
