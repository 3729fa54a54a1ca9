"""Changes settings: --add-config, --add-config-file and --delete-config."""

import argparse
import re

from barnabas.cli.configs.entities import DEFAULT_NAME, Entity
from barnabas.cli.failures import ToolError
from barnabas.client.admin import Admin, AdminError, AlterConfigOp, ConfigOperation
from barnabas.config.properties import load_properties

_KEY = re.compile(r"[a-zA-Z0-9._-]+")


def alter(admin: Admin, entity: Entity, options: argparse.Namespace) -> int:
    if options.all or options.json:
        raise ToolError("--all and --json can only be used with --describe.")
    operations = operations_of(options)
    try:
        admin.incremental_alter_configs({entity.resource(): operations})
    except AdminError as error:
        # There is one entity, so its error says everything.
        (failure,) = error.errors.values()
        raise ToolError(failure.message) from error
    if entity.name == DEFAULT_NAME:
        print(f"Completed updating default config for {entity.type} in the cluster.")
    else:
        print(f"Completed updating config for {entity.singular} {entity.name}.")
    return 0


def operations_of(options: argparse.Namespace) -> list[AlterConfigOp]:
    if options.add_config_file is not None and options.add_config is not None:
        raise ToolError("Only one of --add-config or --add-config-file must be specified.")
    added: dict[str, str] = {}
    if options.add_config_file is not None:
        added.update(load_properties(options.add_config_file.read_text()))
    if options.add_config is not None:
        added.update(parse_added(options.add_config))
    for key in added:
        if not _KEY.fullmatch(key):
            raise ToolError(f"Invalid character found for config key: {key}.")
    deleted = [key.strip() for keys in options.delete_config for key in keys.split(",") if key.strip()]
    both = sorted(set(added) & set(deleted))
    if both:
        raise ToolError(f"Cannot add and delete the same setting: {', '.join(both)}.")
    if not added and not deleted:
        raise ToolError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified "
            "with --alter."
        )
    return [
        *(AlterConfigOp(key, value) for key, value in added.items()),
        *(AlterConfigOp(key, None, ConfigOperation.DELETE) for key in deleted),
    ]


def parse_added(text: str) -> dict[str, str]:
    """Parse 'a=1,b=[x,y]' to a: 1 and b: x,y. A value may be empty."""
    added: dict[str, str] = {}
    for pair in _split(text, ","):
        parts = _split(pair, "=")
        if len(parts) != 2:
            raise ToolError(
                f'--add-config {pair}: all configs to be added must be in the format "key=val" or '
                '"key=[val1,val2]" to group values which contain commas.'
            )
        key, value = parts
        added[key.strip()] = value.replace("[", "").replace("]", "").strip()
    return added


def _split(text: str, separator: str) -> list[str]:
    """Split at separators that are not inside square brackets."""
    pieces = [""]
    is_inside = False
    for character in text:
        if character in "[]":
            is_inside = character == "["
        if character == separator and not is_inside:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces
