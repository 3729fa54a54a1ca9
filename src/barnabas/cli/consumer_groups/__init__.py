"""`barnabas consumer-groups`: list and describe groups, reset and delete their offsets, delete groups."""

import argparse

from barnabas.cli.consumer_groups.options import DESCRIPTION, EXAMPLES, add_arguments, check

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]


def run(options: argparse.Namespace) -> int:
    from barnabas.cli.consumer_groups import deleting, describing, listing, resetting, validating

    check(options)
    if options.validate_regex is not None:
        return validating.validate_regex(options.validate_regex)
    actions = {
        "list": listing.list_groups,
        "describe": describing.describe,
        "reset_offsets": resetting.reset_offsets,
        "delete": deleting.delete_groups,
        "delete_offsets": deleting.delete_offsets,
    }
    (action,) = [act for name, act in actions.items() if getattr(options, name)]
    return action(options)
