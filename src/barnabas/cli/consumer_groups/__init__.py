"""`barnabas consumer-groups`: list and describe groups, reset and delete their offsets, delete groups."""

import argparse

from barnabas.cli.consumer_groups.options import DESCRIPTION, EXAMPLES, add_arguments, check

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]


def run(options: argparse.Namespace) -> int:
    from barnabas.cli.consumer_groups.deleting import delete_groups, delete_offsets
    from barnabas.cli.consumer_groups.describing import describe
    from barnabas.cli.consumer_groups.listing import list_groups
    from barnabas.cli.consumer_groups.resetting import reset_offsets
    from barnabas.cli.consumer_groups.validating import validate_regex

    check(options)
    if options.validate_regex is not None:
        return validate_regex(options.validate_regex)
    actions = {
        "list": list_groups,
        "describe": describe,
        "reset_offsets": reset_offsets,
        "delete": delete_groups,
        "delete_offsets": delete_offsets,
    }
    (action,) = [act for name, act in actions.items() if getattr(options, name)]
    return action(options)
