"""`barnabas consumer-groups`: lists and describes groups, resets and deletes their offsets, deletes
groups."""

import argparse

from barnabas.cli.consumer_groups.options import DESCRIPTION, EXAMPLES, add_arguments, check

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]


def run(options: argparse.Namespace) -> int:
    from barnabas.cli.consumer_groups.deleting import delete_groups, delete_offsets
    from barnabas.cli.consumer_groups.describing import describe
    from barnabas.cli.consumer_groups.listing import list_groups
    from barnabas.cli.consumer_groups.resetting import reset_offsets

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


def validate_regex(expression: str) -> int:
    """--validate-regex: whether brokers would accept a regular expression as a subscription."""
    from barnabas.coordination.patterns import Pattern
    from barnabas.errors import KafkaError

    try:
        Pattern(expression)
    except KafkaError as error:
        reason = error.message.removeprefix(f"{expression!r} is not a regular expression: ").rstrip(".")
        print(f"The regular expression `{expression}` is invalid: {reason}.")
        return 1
    print(f"The regular expression `{expression}` is valid.")
    return 0
